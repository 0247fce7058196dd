#!/usr/bin/env python3
"""Style as a test. Fails on what would make the code worse:

  size      a file over 400 lines, a function over 70
  arrows    an include against the direction of dependence
  units     a number in a settings struct whose name does not end in a unit
  tests     a policy or a method without a test
  leftovers TODO and its kin, commented-out code
  contract  a message without its heading in actors/README.md, or a heading without its message
  format    clang-format would change a file

Offenders that exist are listed in ci/tidy_known.txt with their size; they may only shrink.
Usage: ci/tidy.py [--no-format]
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
SOURCE_SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}

# What a folder may include of ours (prefixes), and what no file below it may include.
ARROWS = [
    ("runtime/core/", ["runtime/core/"]),
    ("runtime/policy/", ["runtime/core/", "runtime/policy/"]),
    ("runtime/methods/", ["runtime/core/", "runtime/methods/"]),
    ("runtime/planning/", ["runtime/core/", "runtime/planning/", "runtime/policy/"]),
    ("runtime/", ["runtime/"]),
    ("gpu/", ["runtime/", "gpu/"]),
    ("actors/", ["runtime/", "actors/"]),
    ("launch/", ["runtime/", "actors/", "launch/", "gpu/"]),
]
FOREIGN = [
    ("runtime/core/", r"caf/|torch/|ATen/|mpi\.h|ucp/|hdf5|yaml-cpp"),
    ("runtime/policy/", r"caf/|torch/|ATen/|mpi\.h|ucp/|hdf5|yaml-cpp|spdlog|<chrono>|<iostream>"),
    ("runtime/methods/", r"caf/|torch/|ATen/|mpi\.h|ucp/|hdf5|yaml-cpp|spdlog|<chrono>|<iostream>"),
    ("actors/", r"torch/|ATen/|cuda|mpi\.h|ucp/|hdf5|nccl"),
    ("runtime/exec/", r"caf/|mpi\.h|ucp/|hdf5|yaml-cpp"),
    ("runtime/ingress/", r"caf/|torch/|ATen/|mpi\.h|ucp/|hdf5|yaml-cpp"),
    ("runtime/text/", r"caf/|torch/|ATen/|mpi\.h|ucp/|hdf5"),
]
UNITS = ("_tokens", "_blocks", "_bytes", "_us", "_ms", "_rows", "_max", "_min", "_fraction",
         "_share", "_billion", "threads", "ranks", "threshold", "_per_block", "_count")
SETTINGS_HEADERS = ["runtime/config/config.hpp"]


class Report:
    def __init__(self):
        self.known = self._read_known()
        self.lines = []

    @staticmethod
    def _read_known():
        path = ROOT / "ci/tidy_known.txt"
        known = {}
        for line in path.read_text().splitlines() if path.exists() else []:
            if line.strip() and not line.startswith("#"):
                size, what = line.split(maxsplit=1)
                known[what.strip()] = int(size)
        return known

    def fault(self, where, what):
        self.lines.append(f"{where}: {what}")

    def size(self, where, what, size, limit):
        allowed = max(limit, self.known.get(what, 0))
        if size > allowed:
            self.fault(where, f"{what} has {size} lines, {allowed} are allowed")


def sources():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [pathlib.PurePosixPath(p) for p in sorted(set(listed.split("\n")))
            if pathlib.PurePosixPath(p).suffix in SOURCE_SUFFIXES and (ROOT / p).exists()]


def check_functions(path, lines, report):
    """Functions start at the first column (clang-format does not indent namespaces) or, inside a
    class, at the third; they end with a brace in the same column."""
    start = None
    for number, line in enumerate(lines, 1):
        if start is None:
            opened = re.match(r"^(  )?[A-Za-z_~\[].*\)[^;]*\{$", line)
            if opened and not re.match(r"^\s*(namespace|struct|class|enum|union|if|for|while|switch|"
                                       r"else|do|extern|BOOST_AUTO_TEST_SUITE)\b", line):
                start = (number, opened.group(1) or "")
        elif line.startswith(start[1] + "}") and not line.startswith(start[1] + " "):
            name = re.search(r"([\w:~]+)\s*\(", lines[start[0] - 1])
            what = f"{path}:{name.group(1) if name else '?'}"
            report.size(f"{path}:{start[0]}", what, number - start[0] + 1, FUNCTION_LINES_MAX)
            start = None


def check_includes(path, lines, report):
    text = str(path)
    allowed = next((a for folder, a in ARROWS if text.startswith(folder)), None)
    for number, line in enumerate(lines, 1):
        include = re.match(r'#include ("(?P<ours>[^"]+)"|(?P<other><[^>]+>))', line)
        if not include:
            continue
        ours, other = include.group("ours"), include.group("other")
        if ours and allowed and not any(ours.startswith(a) for a in allowed):
            report.fault(f"{path}:{number}", f"{ours} is against the arrows")
        if other:
            for folder, pattern in FOREIGN:
                if text.startswith(folder) and re.search(pattern, other):
                    report.fault(f"{path}:{number}", f"{other} has no place below {folder}")


def check_leftovers(path, lines, report):
    for number, line in enumerate(lines, 1):
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
            report.fault(f"{path}:{number}", "a leftover mark")
        comment = re.match(r"^\s*//(?![/<!])\s?(.*)$", line)
        if comment and re.search(r"(;|\{|\})\s*$", comment.group(1)) and \
                re.search(r"[=()<>]", comment.group(1)):
            report.fault(f"{path}:{number}", "looks like commented-out code")


def check_units(path, lines, report):
    number_field = re.compile(r"^\s+(?:std::)?(?:u?int\d+_t|size_t|int|unsigned|float|double)\s+"
                              r"(\w+)\s*(?:=[^;]*)?;")
    for number, line in enumerate(lines, 1):
        field = number_field.match(line)
        if field and field.group(1) != "line" and not field.group(1).endswith(UNITS):
            report.fault(f"{path}:{number}", f"{field.group(1)} does not say its unit")


def check_tests(report):
    tests = "".join(p.read_text() for p in (ROOT / "tests").rglob("*_test.cpp"))
    for folder in ("runtime/policy", "runtime/methods"):
        for header in sorted((ROOT / folder).rglob("*.hpp")):
            name = header.relative_to(ROOT).as_posix()
            if header.name != "method.hpp" and f'#include "{name}"' not in tests and \
                    "plain/plain.hpp" not in name:
                report.fault(name, "has no test that includes it")


def check_contract(report):
    readme = ROOT / "actors/README.md"
    if not readme.exists():
        report.fault("actors/README.md", "is missing")
        return
    text = readme.read_text()
    if len(text.splitlines()) > 200:
        report.fault("actors/README.md", "has more than 200 lines")
    headings = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^### .*", text, re.M))))
    envelope = (ROOT / "actors/envelope.hpp").read_text()
    listed = re.search(r"using wire_messages =\s*std::tuple<(.*?)>;", envelope, re.S).group(1)
    messages = set(re.findall(r"\w+", listed))
    actors = {p.stem for p in (ROOT / "actors").glob("*.hpp")
              if re.search(r"^using \w+_actor\s*=", p.read_text(), re.M)}
    for missing in sorted((messages | actors) - headings):
        report.fault("actors/README.md", f"has no heading for {missing}")
    for extra in sorted(headings - messages - actors):
        report.fault("actors/README.md", f"has a heading for {extra}, which does not exist")


def check_format(paths, report):
    for start in range(0, len(paths), 40):
        part = [str(p) for p in paths[start:start + 40]]
        done = subprocess.run(["clang-format", "--dry-run", "-Werror", *part], cwd=ROOT,
                              capture_output=True, text=True)
        for line in sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.M))):
            report.fault(line, "clang-format would change it")


def main():
    report = Report()
    paths = sources()
    for path in paths:
        lines = (ROOT / path).read_text().splitlines()
        report.size(str(path), str(path), len(lines), FILE_LINES_MAX)
        check_functions(path, lines, report)
        check_includes(path, lines, report)
        check_leftovers(path, lines, report)
        if str(path) in SETTINGS_HEADERS:
            check_units(path, lines, report)
    check_tests(report)
    check_contract(report)
    if "--no-format" not in sys.argv:
        check_format(paths, report)
    for line in report.lines:
        print(line)
    print(f"tidy: {len(paths)} files, {len(report.lines)} faults")
    return 1 if report.lines else 0


if __name__ == "__main__":
    sys.exit(main())
