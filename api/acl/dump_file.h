// The bytes of a dump file: the length of a header (u64), the header (a protobuf message,
// DumpData), then the tensors' bytes, inputs first.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rt/runtime.h"

namespace ge::acl {

// Appends one tensor in the order of its dims: to the header's fields, and to the data. `index`:
// its place among the inputs or outputs.
void AddToDump(const rt::Tensor& tensor, bool input, uint32_t index, const std::string& name,
               std::string* fields, std::string* data);
std::string DumpHeader(const std::string& op, uint64_t time_us, const std::string& fields);
// A line of statistics: "Input/Output,Index,Data Size,Data Type,Format,Shape,Max,Min,Avg,Nan,Inf".
std::string DumpStatistics(const rt::Tensor& tensor, bool input, uint32_t index);

}  // namespace ge::acl
