// JSON as far as this library reads it: acl.json, dump configurations, descriptions in .om files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/acl/include/acl/acl_base.h"
#include "base/status.h"

namespace ge::acl {

struct Json {
  enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  double number = 0;
  std::string string;
  std::vector<Json> items;
  std::map<std::string, Json, std::less<>> members;

  // The member of an object, or null (kNull) if there is none.
  const Json& operator[](std::string_view name) const;
  bool IsNull() const { return kind == Kind::kNull; }
};

Result<Json> ParseJson(std::string_view text);
// A configuration file that a client names: its text and the object in it; "" and null for no file.
aclError ReadConfig(const char* path, std::string* text, Json* json, const char* function);

}  // namespace ge::acl
