// BrGemm of small types, in groups of k that fill 32 bits.
//
// Bytes: C[r, c] += sum over four k of A[r, k] B[k, c], A u8 and B i8, i32 accumulators.
// B holds four steps of k side by side, so one 32-bit lane of a vector of B meets four bytes of A,
// broadcast. With VNNI that is one instruction (vpdpbusd: exact, no saturation). Without it the
// bytes are widened to 16 bits, the even ones and the odd ones apart, and two vpmaddwd add the
// products in 32 bits; vpmaddubsw would saturate. Product and sum are one piece of assembler: a
// compiler that moves products ahead of sums runs out of registers.
// i8 in A counts as its value + 128, that is with its sign bit flipped: tile/tile.h.
// bf16: two k at a time, f32 accumulators, by vdpbf16ps; without it two f32 multiply-adds.
#include "base/check.h"
#include "emit/prelude.h"
#include "emit/printer.h"

namespace ge::emit {

using tile::BrGemm;

namespace {

constexpr int kUnroll = 2;

constexpr const char* kBytesX86 = R"(
#define BYTES_LOAD(x, p, i) __asm__ volatile("vmovups %1, %0" : "=" BR(x) : "m"(*(const vi32_m*)((p) + (i))))
#define BYTES_BROADCAST(x, p, i) __asm__ volatile("vpbroadcastd %1, %0" : "=" BR(x) : "m"(*(const su32_m*)((p) + (i))))
static const su32 flip_signs = 0x80808080;
#define BYTES_FLIP(a) __asm__ volatile("vpxord %1%{1to16%}, %0, %0" : "+v"(a) : "m"(flip_signs))
#define BYTES_DOT(c, a, b) __asm__ volatile("vpdpbusd %2, %1, %0" : "+" BR(c) : BR(a), BR(b))
#define PAIRS_DOT(c, a, b) __asm__ volatile("vdpbf16ps %2, %1, %0" : "+" BR(c) : BR(a), BR(b))
#define WIDE_DOT(c, a, b) __asm__ volatile("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+" BR(c), "=&" BR(T) : BR(a), BR(b))
)";

constexpr const char* kBytesNeon = R"(
#define BYTES_LOAD(x, p, i) __asm__ volatile("ldr %q0, %1" : "=w"(x) : "m"(*(const vi32_m*)((p) + (i))))
#define BYTES_BROADCAST(x, p, i) __asm__ volatile("ld1r {%0.4s}, %1" : "=w"(x) : "Q"(*(const su32_m*)((p) + (i))))
#define WIDE_DOT(c, a, b) __asm__ volatile("smull %1.4s, %3.4h, %4.4h\n\tsmull2 %2.4s, %3.8h, %4.8h\n\t" \
  "addp %1.4s, %1.4s, %2.4s\n\tadd %0.4s, %0.4s, %1.4s" : "+w"(c), "=&w"(T), "=&w"(U) : "w"(a), "w"(b))
)";

constexpr const char* kBytes = R"(
FN vf32 low_half(vi32 x) { return (vf32)(x << 16); }
FN vf32 high_half(vi32 x) { return (vf32)(x & (si32)0xffff0000); }
FN vpair even_bytes(vi32 x) { return (vpair)x << 8 >> 8; }
FN vpair odd_bytes(vi32 x) { return (vpair)x >> 8; }
FN vpair even_unsigned(vi32 x) { return (vpair)(x & 0x00ff00ff); }
FN vpair odd_unsigned(vi32 x) { return (vpair)((vi32)((vu32)x >> 8) & 0x00ff00ff); }
)";

}  // namespace

std::string PreludeBytes(const SocSpec& soc) {
  const std::string type = "typedef short vpair __attribute__((vector_size(4 * W)));\n";
  if (soc.IsArm()) return type + kBytesNeon + kBytes;
  return type + "#define BR " + (soc.masks ? "\"v\"" : "\"x\"") + kBytesX86 + kBytes;
}

void KernelPrinter::PrintGemmGroups(const BrGemm& g, const std::string& acc) {
  for (const auto& [symbol, extent] : g.batch) {
    std::string name = Fresh('i');
    symbols_[symbol.node()] = name;
    Line("for (si64 {0} = 0; {0} < {1}; {0}++) {{", name, Index(extent));
    ++indent_;
  }
  const int element = 4 / g.k_group;  // bytes of one
  Line("const char* const {}A = b{} + {} * {};", acc, g.a_buffer, Index(AtRow(g, 0)), element);
  Line("const char* const {}B = b{} + {} * {};", acc, g.b_buffer, Index(g.b), element);
  Line("const si64 {}K = {} / {};", acc, Index(g.k), g.k_group);
  Line("si64 {}k = 0;", acc);
  auto step = [&](const std::string& group) {
    g.k_group == 4 ? PrintGemmBytesStep(g, acc, group) : PrintGemmPairsStep(g, acc, group);
  };
  const bool fixed = g.k.IsConst();
  if (!fixed || g.k.value() / g.k_group >= kUnroll) {
    Line("for (; {0}k + {1} <= {0}K; {0}k += {1}) {{", acc, kUnroll);
    ++indent_;
    for (int u = 0; u < kUnroll; ++u) step(fmt::format("({}k + {})", acc, u));
    Close();
  }
  if (!fixed || g.k.value() / g.k_group % kUnroll != 0) {
    Line("for (; {0}k < {0}K; {0}k++) {{", acc);
    ++indent_;
    step(acc + "k");
    Close();
  }
  for (size_t i = 0; i < g.batch.size(); ++i) Close();
}

// Two steps of k. `n` is whole vectors: lowering pads B.
void KernelPrinter::PrintGemmPairsStep(const BrGemm& g, const std::string& acc,
                                       const std::string& group) {
  Open();
  for (int v = 0; v < GemmVectors(g); ++v) {
    const std::string at = fmt::format("{} * {} + {}", group, Index(g.b_k * 2), v * lanes_ * 4);
    if (g.prefetch > 0) PrintPrefetch(g, acc, at);
    Line("vi32 B{}; BYTES_LOAD(B{}, {}B, {});", v, v, acc, at);
  }
  for (int r = 0; r < g.m; ++r) {
    Line("vi32 A{}; BYTES_BROADCAST(A{}, {}A, {} + {} * 4);", r, r, acc, RowOffset(g, r, 2), group);
    for (int v = 0; v < GemmVectors(g); ++v) {
      const std::string c = fmt::format("{}_{}_{}", acc, r, v);
      if (bf16_) {
        Line("PAIRS_DOT({}, A{}, B{});", c, r, v);
      } else {
        Line("{0} = v_fma(high_half(A{1}), high_half(B{2}), {0});", c, r, v);
        Line("{0} = v_fma(low_half(A{1}), low_half(B{2}), {0});", c, r, v);
      }
    }
  }
  Close();
}

// Four steps of k. `n` is whole vectors: lowering pads B.
void KernelPrinter::PrintGemmBytesStep(const BrGemm& g, const std::string& acc,
                                       const std::string& group) {
  GE_CHECK(!g.signed_a, "signed bytes beyond a matrix unit's tiles in " + kernel_.name);
  const bool flip = kernel_.buffers[g.a_buffer].dtype == DType::kI8;
  Open();
  for (int v = 0; v < GemmVectors(g); ++v) {
    const std::string at = fmt::format("{} * {} + {}", group, Index(g.b_k), v * lanes_ * 4);
    if (g.prefetch > 0) PrintPrefetch(g, acc, at);
    Line("vi32 B{}; BYTES_LOAD(B{}, {}B, {});", v, v, acc, at);
    if (!vnni_) Line("const vpair E{0} = even_bytes(B{0}), O{0} = odd_bytes(B{0});", v);
  }
  for (int r = 0; r < g.m; ++r) {
    Line("vi32 A{}; BYTES_BROADCAST(A{}, {}A, {} + {} * 4);", r, r, acc, RowOffset(g, r, 1), group);
    if (flip && vnni_) Line("BYTES_FLIP(A{});", r);  // a constant would take a register
    if (flip && !vnni_) Line("A{0} ^= (si32)0x80808080;", r);
    if (!vnni_) Line("const vpair AE{0} = even_unsigned(A{0}), AO{0} = odd_unsigned(A{0});", r);
    for (int v = 0; v < GemmVectors(g); ++v) {
      const std::string c = fmt::format("{}_{}_{}", acc, r, v);
      if (vnni_) {
        Line("BYTES_DOT({}, A{}, B{});", c, r, v);
      } else {
        Line("{{ vi32 T, U; WIDE_DOT({0}, AE{1}, E{2}); WIDE_DOT({0}, AO{1}, O{2}); }}", c, r, v);
      }
    }
  }
  Close();
}

}  // namespace ge::emit
