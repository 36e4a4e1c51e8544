// See suggest.h.

#include "tools/suggest.h"

#include <algorithm>
#include <numeric>

namespace ge {
namespace {

size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string Suggestion(const std::string& given, const std::vector<std::string>& known) {
  size_t best = given.size() / 2;
  std::string name;
  for (const std::string& k : known)
    if (size_t d = EditDistance(given, k); d < best) {
      best = d;
      name = k;
    }
  return name.empty() ? "--help lists the options" : "did you mean " + name + "?";
}

}  // namespace ge
