// Switches between flows of control, each on its own stack.
#pragma once

namespace shunt::simulated {

// The saved state of a suspended flow of control.
struct Place {
  void* registers[5] = {};
};

// Suspends this flow in `from` and resumes `to`; returns when another flow switches back to `from`.
void turn(Place& from, Place& to);

}  // namespace shunt::simulated
