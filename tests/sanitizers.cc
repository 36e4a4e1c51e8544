// What every program of a build with sanitizers asks of them; linked into all of them
// (CMakeLists.txt), nothing calls it.
//
// The sanitizers guess where the thread-local memory of a library loaded later lies from the 16
// bytes before it, as if an old glibc had put a header there. Where that memory starts 16 bytes
// into a page (one time in 64) they read an allocator's header instead, and the search for leaks
// ends with a fault of its own. Without the guess such memory is simply no root of that search;
// ours holds no pointers.
extern "C" {

const char* __asan_default_options() { return "intercept_tls_get_addr=0"; }  // NOLINT: their name
const char* __tsan_default_options() { return "intercept_tls_get_addr=0"; }  // NOLINT: their name
}
