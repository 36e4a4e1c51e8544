// StringConcat, StringSplit, StringNormalizer, RegexFullMatch, LabelEncoder.
#include <algorithm>
#include <cmath>
#include <map>

#include "abi/convert.h"
#include "rt/host/regex.h"
#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

Status StringConcat(HostCall& call) {
  const Object *a, *b;
  GE_TRY(StringsIn(call, 0, &a));
  GE_TRY(StringsIn(call, 1, &b));
  const size_t rank = std::max(a->dims.size(), b->dims.size());
  Shape out(rank);
  auto dim = [&](const Object* t, size_t d) {
    return d + t->dims.size() < rank ? 1 : t->dims[d + t->dims.size() - rank];
  };
  for (size_t d = 0; d < rank; ++d) {
    const int64_t x = dim(a, d), y = dim(b, d);
    if (x != y && x != 1 && y != 1)
      return Invalid("shapes " + Text(a->dims) + " and " + Text(b->dims) + " do not broadcast");
    out[d] = x == 1 ? y : x;
  }
  std::vector<std::string> strings(Count(out));
  for (size_t i = 0; i < strings.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), pa = 0, pb = 0, sa = 1, sb = 1;
    for (size_t d = rank; d-- > 0;) {
      const int64_t k = rest % out[d];
      rest /= out[d];
      if (dim(a, d) != 1) pa += k * sa;
      if (dim(b, d) != 1) pb += k * sb;
      sa *= dim(a, d);
      sb *= dim(b, d);
    }
    strings[i] = a->strings[pa] + b->strings[pb];
  }
  return GiveStrings(call, 0, std::move(out), std::move(strings));
}

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Without a delimiter: at runs of white space, ends trimmed. `most` cuts, if not negative.
std::vector<std::string> SplitString(const std::string& s, const std::string& delimiter,
                                     int64_t most) {
  std::vector<std::string> parts;
  if (delimiter.empty()) {
    size_t i = 0;
    while (true) {
      while (i < s.size() && IsSpace(s[i])) ++i;
      if (i >= s.size()) return parts;
      size_t end = i;
      if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
        end = s.size();
        while (end > i && IsSpace(s[end - 1])) --end;
        parts.push_back(s.substr(i, end - i));
        return parts;
      }
      while (end < s.size() && !IsSpace(s[end])) ++end;
      parts.push_back(s.substr(i, end - i));
      i = end;
    }
  }
  if (s.empty()) return parts;
  size_t i = 0;
  for (size_t hit; (most < 0 || static_cast<int64_t>(parts.size()) < most) &&
                   (hit = s.find(delimiter, i)) != std::string::npos;
       i = hit + delimiter.size())
    parts.push_back(s.substr(i, hit - i));
  parts.push_back(s.substr(i));
  return parts;
}

Status StringSplit(HostCall& call) {
  const Object* x;
  GE_TRY(StringsIn(call, 0, &x));
  const std::string delimiter = call.attrs.Str("delimiter", "");
  const int64_t most = call.attrs.Has("maxsplit") ? call.attrs.Int("maxsplit", 0) : -1;
  std::vector<std::vector<std::string>> parts;
  size_t longest = 0;
  for (const std::string& s : x->strings) {
    parts.push_back(SplitString(s, delimiter, most));
    longest = std::max(longest, parts.back().size());
  }
  call.sizes.push_back(static_cast<int64_t>(longest));
  void* counts;
  GE_TRY(Claim(call, 1, x->dims, &counts));
  std::vector<std::string> strings;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (counts) static_cast<int64_t*>(counts)[i] = static_cast<int64_t>(parts[i].size());
    parts[i].resize(longest);
    strings.insert(strings.end(), parts[i].begin(), parts[i].end());
  }
  Shape out = x->dims;
  out.push_back(static_cast<int64_t>(longest));
  return GiveStrings(call, 0, std::move(out), std::move(strings));
}

// ASCII only; other letters keep their case.
std::string ChangeCase(std::string s, const std::string& change) {
  for (char& c : s) {
    if (change == "LOWER" && c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if (change == "UPPER" && c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
  return s;
}

Status StringNormalizer(HostCall& call) {
  const Object* x;
  GE_TRY(StringsIn(call, 0, &x));
  if (x->dims.empty() || x->dims.size() > 2 || (x->dims.size() == 2 && x->dims[0] != 1))
    return Invalid("X " + Text(x->dims) + " must be [C] or [1, C]");
  const std::string change = call.attrs.Str("case_change_action", "NONE");
  const bool exact = call.attrs.Int("is_case_sensitive", 0) != 0;
  std::vector<std::string> stop = call.attrs.Strs("stopwords"), kept;
  auto key = [&](const std::string& s) { return exact ? s : ChangeCase(s, "LOWER"); };
  for (std::string& s : stop) s = key(s);
  for (const std::string& s : x->strings)
    if (std::find(stop.begin(), stop.end(), key(s)) == stop.end())
      kept.push_back(ChangeCase(s, change));
  if (kept.empty()) kept.emplace_back();
  Shape out = x->dims;
  out.back() = static_cast<int64_t>(kept.size());
  call.sizes.push_back(out.back());
  return GiveStrings(call, 0, std::move(out), std::move(kept));
}

Status RegexFullMatch(HostCall& call) {
  const Object* x;
  GE_TRY(StringsIn(call, 0, &x));
  GE_ASSIGN(const Regex re, Regex::Compile(call.attrs.Str("pattern", "")));
  void* y;
  GE_TRY(Claim(call, 0, x->dims, &y));
  for (size_t i = 0; y && i < x->strings.size(); ++i)
    static_cast<uint8_t*>(y)[i] = re.FullMatch(x->strings[i]);
  return {};
}

// Keys as strings: a label of any type in one form. NaN equals itself, -0 equals 0.
std::string KeyText(double v) {
  return std::isnan(v) ? "nan"
                       : std::to_string(v == 0 ? 0.0 : v) + "/" +
                             std::to_string(std::bit_cast<uint64_t>(v == 0 ? 0.0 : v));
}

std::vector<std::string> KeyList(const HostAttrs& attrs) {
  std::vector<std::string> keys = attrs.Strs("keys_strings");
  for (int64_t k : attrs.Ints("keys_int64s")) keys.push_back(std::to_string(k));
  for (double k : attrs.Floats("keys_floats")) keys.push_back(KeyText(k));
  return keys;
}

Status KeysIn(const HostCall& call, std::vector<std::string>* keys, Shape* dims) {
  if (call.inputs[0].object != nullptr &&
      static_cast<DType>(call.inputs[0].object->dtype) == DType::kString) {
    const Object* x;
    GE_TRY(StringsIn(call, 0, &x));
    *keys = x->strings;
    *dims = x->dims;
    return {};
  }
  HostTensor x;
  GE_TRY(TensorIn(call, 0, &x));
  dims->assign(x.dims.begin(), x.dims.end());
  for (int64_t i = 0, n = Count(x.dims); i < n; ++i)
    keys->push_back(IsFloat(TypeOf(x)) ? KeyText(LoadElement<double>(TypeOf(x), x.data, i))
                                       : std::to_string(IntAt(x, i)));
  return {};
}

Status LabelEncoder(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 1));
  std::vector<std::string> x;
  Shape dims;
  GE_TRY(KeysIn(call, &x, &dims));
  const std::vector<std::string> keys = KeyList(call.attrs),
                                 strings = call.attrs.Strs("values_strings");
  const std::vector<int64_t> ints = call.attrs.Ints("values_int64s");
  const std::vector<double> floats = call.attrs.Floats("values_floats");
  if (keys.size() != strings.size() + ints.size() + floats.size())
    return Invalid(std::to_string(keys.size()) + " keys, but another number of values");
  std::map<std::string, size_t> place;
  for (size_t i = 0; i < keys.size(); ++i) place.emplace(keys[i], i);
  auto find = [&](const std::string& k) {
    const auto it = place.find(k);
    return it == place.end() ? -1 : static_cast<int64_t>(it->second);
  };
  if (call.outputs.empty()) return {};
  if (static_cast<DType>(call.outputs[0].dtype) == DType::kString) {
    const std::string otherwise = call.attrs.Str("default_string", "_Unused");
    std::vector<std::string> out;
    for (const std::string& k : x) out.push_back(find(k) < 0 ? otherwise : strings[find(k)]);
    return GiveStrings(call, 0, std::move(dims), std::move(out));
  }
  void* y;
  GE_TRY(Claim(call, 0, dims, &y));
  const auto t = static_cast<DType>(call.outputs[0].dtype);
  for (size_t i = 0; y && i < x.size(); ++i) {
    const int64_t at = find(x[i]), to = static_cast<int64_t>(i);
    if (!floats.empty())
      StoreElement<double>(t, y, to, at < 0 ? call.attrs.Float("default_float", -0.0) : floats[at]);
    else
      StoreElement<int64_t>(t, y, to, at < 0 ? call.attrs.Int("default_int64", -1) : ints[at]);
  }
  return {};
}

[[maybe_unused]] const bool kRegistered =
    RegisterHost("StringConcat", StringConcat) & RegisterHost("StringSplit", StringSplit) &
    RegisterHost("StringNormalizer", StringNormalizer) &
    RegisterHost("RegexFullMatch", RegexFullMatch) & RegisterHost("LabelEncoder", LabelEncoder);

}  // namespace
}  // namespace ge::rt
