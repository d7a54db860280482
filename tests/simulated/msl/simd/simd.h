// What translated kernels include beside metal_stdlib; they use nothing of it.
#pragma once
