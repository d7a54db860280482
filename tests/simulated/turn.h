// Turns from one flow of control to another, each on a stack of its own.
#pragma once

namespace shunt::simulated {

// Where a flow of control stopped.
struct Place {
  void* registers[5] = {};
};

// Stops here and goes on at `to`; returns when somebody turns to `from`.
void turn(Place& from, Place& to);

}  // namespace shunt::simulated
