// F32 heads: a thread rotates one pair of a few heads of a token, all by the same angle. Elements that are not rotated
// are copied in pairs too.
#include "ops/rotary/rotary.cuh"

SHUNT_BOUNDED_KERNEL(rotary_pairs, shunt::kRotaryThreads, 4) {
  using namespace shunt;
  const auto& args = arguments_of<RotaryArgs>(call);
  const std::uint32_t columns = args.x.extents[3];
  const std::uint32_t heads = args.x.extents[2];
  const std::uint64_t index = group() * kRotaryThreads + lane();
  const std::uint64_t item = index / (columns / 2U);
  const auto number = static_cast<std::uint32_t>(index % (columns / 2U));
  const std::uint64_t token = item / rotary_head_groups(args);
  const auto first_head = static_cast<std::uint32_t>(item % rotary_head_groups(args)) * kRotaryHeads;
  if (token * heads >= valid_row_count(args.x, parameters_of(call))) return;
  const bool rotates = number < args.dims / 2U;
  const RotaryPair pair = rotates ? rotary_pair(args, number) : RotaryPair{2U * number, 2U * number + 1U};
  Rotation by{1.0F, 0.0F};
  if (rotates)
    by = rotation_of_pair(args, number, input_of<std::int32_t>(call, 1)[token * args.position_stride],
                          reinterpret_cast<const std::uint32_t*>(call->constants),
                          args.has_factors != 0 ? input_of<float>(call, 2) : nullptr);
  const float* const x = input_of<float>(call, 0) + row_offset(args.x, token * heads);
  float* const out = output_of<float>(call) + token * heads * columns;
  float first[kRotaryHeads];
  float second[kRotaryHeads];
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kRotaryHeads; ++i) {
    const std::uint32_t head = first_head + i < heads ? first_head + i : first_head;
    const float* const of_head = x + std::uint64_t{head} * args.x.strides[2];
    first[i] = of_head[std::uint64_t{pair.first} * args.x.strides[3]];
    second[i] = of_head[std::uint64_t{pair.second} * args.x.strides[3]];
  }
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < kRotaryHeads; ++i) {
    if (first_head + i >= heads) break;
    float* const of_head = out + std::uint64_t{first_head + i} * columns;
    of_head[pair.first] = first[i] * by.cosine - second[i] * by.sine;
    of_head[pair.second] = first[i] * by.sine + second[i] * by.cosine;
  }
}
