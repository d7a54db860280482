// Builds the arguments of calls of the layer_norm family (layer_norm_args.h). Pure functions, for the host.
#pragma once

#include "ops/layer_norm/layer_norm_args.h"
#include "ops/strided.h"

namespace shunt {

[[nodiscard]] LayerNormArgs layer_norm_arguments(const OpCall& call);

}  // namespace shunt
