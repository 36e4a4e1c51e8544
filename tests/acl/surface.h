// Every function of AscendCL, called with arguments that are drawn by their types.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "api/acl/include/acl/acl.h"
#include "api/acl/include/acl/acl_dump.h"
#include "api/acl/include/acl/acl_prof.h"
#include "api/acl/include/acl/acl_rtc.h"
#include "api/acl/include/acl/acl_tdt.h"
#include "api/acl/include/acl/acl_tdt_queue.h"
#include "api/acl/include/aclnn/acl_meta.h"

namespace surface {

template <class T, class = void>
inline constexpr bool kOpaque = true;
template <class T>
inline constexpr bool kOpaque<T, std::void_t<decltype(sizeof(T))>> = false;

// A function of the type that does nothing.
template <class R, class... A>
R (*Nothing(R (*)(A...)))(A...) {
  return [](A...) -> R {
    if constexpr (!std::is_void_v<R>) return R{};
  };
}

// Source: Number() an integer, Handle() any handle, Memory() zeroed memory that holds any of the
// API's structures or null, Text() a C string or null, Flip() a choice. Counts stay below 4096:
// what they count must be there.
template <class T, class Source>
T Draw(Source& source) {
  if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return static_cast<T>(sizeof(T) == 8 || std::is_same_v<T, uint32_t> ? source.Number() % 4096
                                                                        : source.Number());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(source.Number());
  } else if constexpr (std::is_same_v<T, const char*>) {
    return source.Text();
  } else if constexpr (std::is_pointer_v<T>) {
    using P = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_function_v<P>) {
      return source.Flip() ? Nothing(T{}) : nullptr;
    } else if constexpr (std::is_same_v<T, void*> || (kOpaque<P> && !std::is_void_v<P>)) {
      return static_cast<T>(source.Handle());
    } else {
      return static_cast<T>(source.Memory());
    }
  } else {
    return T{};
  }
}

// What an aclError-returning function gave; ACL_SUCCESS for others.
template <class Source, class R, class... A>
int Call(Source& source, R (*function)(A...)) {
  if constexpr (std::is_same_v<R, aclError>) {
    return function(Draw<A>(source)...);
  } else {
    function(Draw<A>(source)...);
    return ACL_SUCCESS;
  }
}

}  // namespace surface
