// TfIdfVectorizer: in each row, how often each n-gram of the pool occurs, its words up to
// max_skip_count + 1 apart. TF: the count; IDF: the weight if it occurs; TFIDF: count * weight.
#include <algorithm>
#include <map>

#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

// Words as text: integers by their digits.
Status WordsIn(const HostCall& call, std::vector<std::string>* words, Shape* dims) {
  if (call.inputs.empty()) return Invalid("operand 0 is missing");
  if (const Object* o = call.inputs[0].object;
      o != nullptr && static_cast<DType>(o->dtype) == DType::kString) {
    *words = o->strings;
    *dims = o->dims;
    return {};
  }
  HostTensor x;
  GE_TRY(TensorIn(call, 0, &x));
  GE_TRY(CheckIndexType(x, "X"));
  dims->assign(x.dims.begin(), x.dims.end());
  for (int64_t i = 0, n = Count(x.dims); i < n; ++i) words->push_back(std::to_string(IntAt(x, i)));
  return {};
}

struct Pool {
  std::map<std::vector<std::string>, int64_t> number;  // n-gram -> its place in ngram_indexes
  int64_t size = 0;
};

// ngram_counts[n-1] is where the n-grams begin in the pool of words.
Status ReadPool(const HostAttrs& attrs, Pool* pool) {
  std::vector<std::string> words = attrs.Strs("pool_strings");
  for (int64_t k : attrs.Ints("pool_int64s")) words.push_back(std::to_string(k));
  const std::vector<int64_t> starts = attrs.Ints("ngram_counts");
  for (size_t n = 1; n <= starts.size(); ++n) {
    const int64_t begin = starts[n - 1],
                  end = n < starts.size() ? starts[n] : static_cast<int64_t>(words.size());
    if (begin < 0 || end < begin || end > static_cast<int64_t>(words.size()) ||
        (end - begin) % static_cast<int64_t>(n) != 0)
      return Invalid("ngram_counts do not fit a pool of " + std::to_string(words.size()) +
                     " words");
    for (int64_t at = begin; at < end; at += static_cast<int64_t>(n))
      pool->number.emplace(std::vector<std::string>(words.begin() + at,
                                                    words.begin() + at + static_cast<int64_t>(n)),
                           pool->size++);
  }
  return {};
}

struct Counter {
  const Pool& pool;
  const std::vector<int64_t>& columns;
  int64_t least, most, skip;

  void CountRow(const std::string* words, int64_t n, float* row) const {
    for (int64_t gram = least; gram <= most; ++gram)
      // Words one apart are the same at every distance.
      for (int64_t step = 1; step <= (gram == 1 ? 1 : skip + 1); ++step)
        for (int64_t at = 0; at + (gram - 1) * step < n; ++at) {
          std::vector<std::string> key;
          for (int64_t k = 0; k < gram; ++k) key.push_back(words[at + k * step]);
          if (const auto it = pool.number.find(key); it != pool.number.end())
            row[columns[it->second]] += 1;
        }
  }
};

Status TfIdfVectorizer(HostCall& call) {
  std::vector<std::string> words;
  Shape dims;
  GE_TRY(WordsIn(call, &words, &dims));
  if (dims.empty() || dims.size() > 2) return Invalid("X " + Text(dims) + " must have rank 1 or 2");
  Pool pool;
  GE_TRY(ReadPool(call.attrs, &pool));
  const std::vector<int64_t> columns = call.attrs.Ints("ngram_indexes");
  const std::vector<double> weights = call.attrs.Floats("weights");
  if (static_cast<int64_t>(columns.size()) < pool.size)
    return Invalid("fewer ngram_indexes than n-grams");
  if (columns.empty() || *std::min_element(columns.begin(), columns.end()) < 0)
    return Invalid("ngram_indexes must not be negative");
  const std::string mode = call.attrs.Str("mode", "TF");
  const int64_t width = *std::max_element(columns.begin(), columns.end()) + 1, n = dims.back(),
                rows = dims.size() == 2 ? dims[0] : 1;
  Shape out(dims.begin(), dims.end() - 1);
  out.push_back(width);
  void* y;
  GE_TRY(Claim(call, 0, out, &y));
  if (y == nullptr) return {};
  auto* data = static_cast<float*>(y);
  std::fill_n(data, rows * width, 0.0F);
  const Counter counter{pool, columns, std::max<int64_t>(1, call.attrs.Int("min_gram_length", 1)),
                        call.attrs.Int("max_gram_length", 1), call.attrs.Int("max_skip_count", 0)};
  std::vector<float> weight(width, 1.0F);
  for (size_t i = 0; i < weights.size() && i < columns.size(); ++i)
    weight[columns[i]] = static_cast<float>(weights[i]);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = data + r * width;
    counter.CountRow(words.data() + r * n, n, row);
    for (int64_t k = 0; k < width; ++k) {
      if (mode == "IDF") row[k] = row[k] > 0 ? weight[k] : 0;
      if (mode == "TFIDF") row[k] *= weight[k];
    }
  }
  return {};
}

[[maybe_unused]] const bool kRegistered = RegisterHost("TfIdfVectorizer", TfIdfVectorizer);

}  // namespace
}  // namespace ge::rt
