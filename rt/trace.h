// A timeline of a Run in the Chrome/Perfetto JSON form, asked for by GE_TRACE=file.json.
//
// Invariant: each worker appends to its own list, and the lists are read when no task runs. The
// file is written when the Run ends; a second Run of the process writes file.2.json, and so on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "om/plan.h"

namespace ge::rt {

int64_t NowNs();  // steady

class Trace {
 public:
  // Null if the environment does not ask for a trace.
  static std::unique_ptr<Trace> FromEnvironment(const om::Plan& plan, int workers);
  Trace(std::string path, const om::Plan& plan, int workers);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void Add(int worker, size_t task, int64_t chunks, int64_t begin_ns, int64_t end_ns) {
    std::vector<Event>& events = events_[static_cast<size_t>(worker)];
    if (events.size() < kMostEvents) {
      events.push_back({static_cast<int32_t>(task), chunks, begin_ns, end_ns});
    }
  }

 private:
  static constexpr size_t kMostEvents = 1 << 20;  // of each worker
  struct Event {
    int32_t task;
    int64_t chunks, begin_ns, end_ns;
  };
  bool Write() const;

  std::string path_;
  const om::Plan& plan_;
  int64_t start_;
  std::vector<std::vector<Event>> events_;
};

}  // namespace ge::rt
