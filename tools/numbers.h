// Ranges of numbers on the command line. CLI11's own checks print a bound with all its digits.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

namespace ge {

constexpr int64_t kMostThreads = 1024;

inline CLI::Validator NumberThat(const std::function<bool(double)>& fits, const std::string& what) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        double value = 0;
        // What is no number at all is said by the option itself.
        if (!CLI::detail::lexical_cast(text, value) || fits(value)) return {};
        return text + " is not " + what;
      },
      what);
}

inline CLI::Validator AtLeast(int64_t least) {
  const std::string what = least == 0 ? "0 or more" : std::to_string(least) + " or more";
  return NumberThat([=](double v) { return v >= static_cast<double>(least); }, what);
}

inline CLI::Validator Between(int64_t least, int64_t most) {
  return NumberThat(
      [=](double v) { return v >= static_cast<double>(least) && v <= static_cast<double>(most); },
      "a number from " + std::to_string(least) + " to " + std::to_string(most));
}

inline CLI::Validator AboveZero() {
  return NumberThat([](double v) { return v > 0 && std::isfinite(v); }, "a number above 0");
}

inline CLI::Validator Finite() {
  return NumberThat([](double v) { return std::isfinite(v); }, "a finite number");
}

}  // namespace ge
