#!/usr/bin/env bash
# Part of a bundle of ci/bundle.sh: install.sh PREFIX. Unpacks its packages and sources below PREFIX
# and writes PREFIX/env.sh; changes nothing else. PREFIX can't be moved afterwards.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: install.sh PREFIX" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
case $prefix in
  *[[:space:]\|\&]*) echo "install: no spaces, | or & in $prefix, please" >&2; exit 2 ;;
esac
usr=$prefix/usr
arch=$(gcc -print-multiarch 2>/dev/null || echo "$(uname -m)-linux-gnu")
lib=$usr/lib/$arch

for deb in "$here"/debs/*.deb; do
  dpkg -x "$deb" "$prefix"
done
tar -C "$prefix" -xf "$here/src.tar"

# What update-alternatives would have linked: name, then where to, from the name's folder.
while read -r name target; do
  if [ -e "$(dirname "$name")/$target" ] && [ ! -e "$name" ]; then
    ln -sfn "$target" "$name"
  fi
done <<END
$usr/bin/cc gcc
$usr/bin/c++ g++
$usr/bin/mpicc mpicc.openmpi
$usr/bin/mpic++ mpic++.openmpi
$usr/bin/mpicxx mpic++.openmpi
$usr/bin/mpirun mpirun.openmpi
$usr/bin/mpiexec mpiexec.openmpi
$lib/libblas.so.3 openblas-pthread/libblas.so.3
$lib/libblas.so.3 blas/libblas.so.3
$lib/liblapack.so.3 openblas-pthread/liblapack.so.3
$lib/liblapack.so.3 lapack/liblapack.so.3
$lib/libopenblas.so.0 openblas-pthread/libopenblas.so.0
END

# Absolute paths of the packages: to what was unpacked. What lies in /usr/local is the target's own.
grep -rlZ --include='*.pc' --include='*.cmake' -E '/usr(/|$)' "$usr/lib" "$usr/share" 2>/dev/null |
  xargs -0 -r sed -i -E -e "s|(^\|[=\"; :IL])/usr(/\|$\|\"\|;)|\1$usr\2|g" -e "s|$usr/local|/usr/local|g"

libraries=$lib:$usr/lib:$prefix/lib/$arch:$lib/openblas-pthread:$lib/blas:$lib/lapack
{
  echo "# Source this: what was unpacked below $prefix, before the system's own."
  echo "export PATH=\"$usr/bin\${PATH:+:\$PATH}\""
  echo "export LD_LIBRARY_PATH=\"$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}\""
  echo "export CMAKE_PREFIX_PATH=\"$usr\${CMAKE_PREFIX_PATH:+:\$CMAKE_PREFIX_PATH}\""
  echo "export PKG_CONFIG_PATH=\"$lib/pkgconfig:$usr/share/pkgconfig\${PKG_CONFIG_PATH:+:\$PKG_CONFIG_PATH}\""
  echo "export LIBRARY_PATH=\"$lib\${LIBRARY_PATH:+:\$LIBRARY_PATH}\""
  if [ -d "$usr/include" ]; then
    # After the compiler's own folders: headers of the C++ library include those that come next.
    for flags in CFLAGS CXXFLAGS; do
      echo "export $flags=\"\${$flags:+\$$flags }-idirafter $usr/include/$arch -idirafter $usr/include\""
    done
  fi
  [ ! -e "$usr/bin/mpirun" ] || echo "export OPAL_PREFIX=\"$usr\""
} >"$prefix/env.sh"
echo "install: done; now: . $prefix/env.sh"
