// What the elementwise ops of namespace demo do to one element, in WGSL. Made by backplane-codegen from golden.yaml; edit that instead.
// WGSL includes no files: put the text of backplane/scalar.wgsl into the same module.

fn demo_axpby_int8(x_0: i32, y_1: i32, alpha_2: i32, beta_3: i32) -> i32 {
  return extractBits(i32(extractBits(i32(x_0 * alpha_2), 0u, 8u) + extractBits(i32(y_1 * beta_3), 0u, 8u)), 0u, 8u);
}
fn demo_axpby_int16(x_0: i32, y_1: i32, alpha_2: i32, beta_3: i32) -> i32 {
  return extractBits(i32(extractBits(i32(x_0 * alpha_2), 0u, 16u) + extractBits(i32(y_1 * beta_3), 0u, 16u)), 0u, 16u);
}
fn demo_axpby_int32(x_0: i32, y_1: i32, alpha_2: i32, beta_3: i32) -> i32 {
  return i32(i32(x_0 * alpha_2) + i32(y_1 * beta_3));
}
fn demo_axpby_int64(x_0: vec2<u32>, y_1: vec2<u32>, alpha_2: vec2<u32>, beta_3: vec2<u32>) -> vec2<u32> {
  return bp_add_of_int64(bp_multiply_of_int64(x_0, alpha_2), bp_multiply_of_int64(y_1, beta_3));
}
fn demo_axpby_uint8(x_0: u32, y_1: u32, alpha_2: u32, beta_3: u32) -> u32 {
  return extractBits(u32(extractBits(u32(x_0 * alpha_2), 0u, 8u) + extractBits(u32(y_1 * beta_3), 0u, 8u)), 0u, 8u);
}
fn demo_axpby_uint16(x_0: u32, y_1: u32, alpha_2: u32, beta_3: u32) -> u32 {
  return extractBits(u32(extractBits(u32(x_0 * alpha_2), 0u, 16u) + extractBits(u32(y_1 * beta_3), 0u, 16u)), 0u, 16u);
}
fn demo_axpby_uint32(x_0: u32, y_1: u32, alpha_2: u32, beta_3: u32) -> u32 {
  return u32(u32(x_0 * alpha_2) + u32(y_1 * beta_3));
}
fn demo_axpby_uint64(x_0: vec2<u32>, y_1: vec2<u32>, alpha_2: vec2<u32>, beta_3: vec2<u32>) -> vec2<u32> {
  return bp_add_of_uint64(bp_multiply_of_uint64(x_0, alpha_2), bp_multiply_of_uint64(y_1, beta_3));
}
fn demo_axpby_float32(x_0: f32, y_1: f32, alpha_2: f32, beta_3: f32) -> f32 {
  return bp_add_of_float32(bp_multiply_of_float32(x_0, alpha_2), bp_multiply_of_float32(y_1, beta_3));
}
fn demo_cube_float32(x_0: f32) -> f32 {
  let s_1: f32 = bp_multiply_of_float32(x_0, x_0);
  return bp_multiply_of_float32(x_0, s_1);
}
