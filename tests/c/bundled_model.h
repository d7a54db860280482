// The model that comes with the repository, and the start of a story that it continues.
#pragma once

inline constexpr const char* kModel = SHUNT_TEST_DATA "/../../models/tiny-llama-q8_0.gguf";
inline constexpr const char* kPrompt = "Once upon a time there was a fox named";
