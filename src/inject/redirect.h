// SPDX-License-Identifier: Apache-2.0
// Makes the rest of the process call our function where it would call one of a loaded library: how
// the injected library learns that somebody else is about to subscribe to CUPTI, which lets in one
// subscriber only and has no way to be told that another one waits (PyTorch's profiler tries once
// and then shows no kernels for good).
//
// Two places are changed, both data of this process only: the import tables of the objects that
// are loaded and link the library, and the library's own symbol table, for those that look it up
// later (dlsym, objects that are loaded later). No code is changed. What cannot be changed (a page
// that must stay read-only) is left as it is.
//
// Thread rule: once for each function, while the library stays loaded for good. Calls that come
// meanwhile see the old or the new function.
#pragma once

namespace gpoeo::inject {

// `library`: the start of its file name, as objects that link it name it ("libcupti").
// How many places were changed.
int redirect_calls(const char* library, const char* name, void* real, void* replacement);

}  // namespace gpoeo::inject
