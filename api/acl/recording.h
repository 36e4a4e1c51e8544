// Recording: tasks of streams, kept instead of run, in the order in which they were submitted.
//
// That order satisfies every dependency between the recorded streams: an event is recorded before
// it is waited for. So a recording runs on one stream, task after task, as often as wanted; the
// tasks hold what they need (memory stays pinned) as long as the recording lives. Runs of one
// recording take turns: they use the same memory.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/acl/stream.h"

namespace ge::acl {

class Recording {
 public:
  static constexpr int kHandleKind = 14;
  // Where it goes on, instead of with the next task of the same stream (label.cc).
  struct Turn {
    bool leave = false;            // this stream rests
    const void* label = nullptr;   // go to it
    const void* stream = nullptr;  // start it
  };
  struct Step {
    std::string kind;  // the function that submitted it
    void* stream;      // that it was submitted to
    Stream::Task task;
    std::shared_ptr<const void> label = nullptr;  // this is its place
    std::function<Turn()> turn = nullptr;         // instead of the task
  };
  using Steps = std::vector<Step>;

  void Add(Step step);
  std::shared_ptr<const Steps> steps() const;
  // Takes the place of as many steps from `begin` on; false if the counts differ.
  bool Replace(size_t begin, size_t end, const Steps& steps);

  // Which streams it is fed by; the first is where the capture began. `asleep`: runs when another
  // starts it.
  void Join(const std::shared_ptr<Stream>& stream, bool asleep = false);
  std::vector<const void*> asleep() const;
  void Leave(const Stream& stream);
  void StreamGone(const Stream& stream);
  // Ends the recording: no stream feeds it any more.
  void Close();
  bool open() const;
  std::vector<void*> streams() const;  // that were joined, in order
  bool BeganOn(const void* stream) const;

  void* handle = nullptr;
  std::weak_ptr<Recording> part_of;  // of whose condition it is a branch
  bool by_hand = false;              // aclmdlRIBuildBegin
  const Stream* runner = nullptr;    // that runs it now; under the Signal's lock
  std::vector<void*> groups;  // handles of its task groups, under the lock of the open groups

 private:
  mutable std::mutex mutex_;
  Steps steps_;
  mutable std::shared_ptr<const Steps> snapshot_;  // what runs hold; null after a change
  std::vector<std::weak_ptr<Stream>> feeding_;
  std::vector<void*> joined_;
  std::vector<const void*> asleep_;
  bool open_ = true;
};

std::shared_ptr<Recording> NewRecording(bool by_hand);
// In the order of submission, as far as nothing jumps and no stream sleeps.
aclError RunSteps(const Recording::Steps& steps, const Stream& stream,
                  const std::vector<const void*>& asleep = {});
// Handles of conditions and branches die with their recording (recording_condition.cc).
void ForgetPartsOf(const Recording& recording);

}  // namespace ge::acl
