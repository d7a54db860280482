// Included by translated kernels next to metal_stdlib; they use nothing from it.
#pragma once
