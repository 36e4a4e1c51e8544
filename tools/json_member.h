// Members of JSON that somebody else may have written: the description of an .om is free text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

namespace ge {

// The member, or `otherwise` where it is missing or has another type.
template <class T>
T MemberOr(const nlohmann::json& object, const char* key, T otherwise) {
  const auto at = object.find(key);  // end() of what is no object
  if (at == object.end()) return otherwise;
  bool fits = at->is_number();
  if constexpr (std::is_same_v<T, std::string>) {
    fits = at->is_string();
  } else if constexpr (std::is_same_v<T, bool>) {
    fits = at->is_boolean();
  } else if constexpr (std::is_integral_v<T>) {
    fits = at->is_number_integer();
  }
  return fits ? at->get<T>() : otherwise;
}

// Of an array; null where there is none of that number.
inline const nlohmann::json& ElementOrNull(const nlohmann::json& array, size_t i) {
  static const nlohmann::json null;
  return array.is_array() && i < array.size() ? array[i] : null;
}

}  // namespace ge
