// See interpreted.h. A kernel and its interpreter live as long as the model that was loaded.
#include "plan/interpreted.h"

#include "tile/interpret.h"
#include "tile/tile.h"

namespace ge {

Result<rt::LoadOptions::TextKernel> InterpretedKernel(const std::string& tile_ir) {
  struct Code {
    ExprArena arena;
    std::unique_ptr<tile::Interpreter> interpreter;
  };
  auto code = std::make_shared<Code>();
  GE_ASSIGN(const tile::Kernel kernel, tile::ParseKernel(tile_ir, code->arena));
  GE_TRY(tile::Verify(kernel));
  code->interpreter = std::make_unique<tile::Interpreter>(kernel);
  return rt::LoadOptions::TextKernel{tile::GeInterpretKernel,
                                     std::shared_ptr<const void>(code, code->interpreter.get())};
}

}  // namespace ge
