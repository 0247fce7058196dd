#pragma once

/// Marks a function whose loops are to be vectorised: compiled once for each vector width, one of
/// which is picked when the program starts. No clones under a sanitizer, whose runtime is not up
/// yet when the choice is made.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TR_HOT_KERNEL                                                                              \
  __attribute__((optimize("O3"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TR_HOT_KERNEL
#endif
