from __future__ import annotations

import pytest

from core.kernel_names import is_mangled_long, kernel_in_line, short_kernel_name, short_op_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array"
            "<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
            "add · elementwise",
        ),
        (
            "void at::native::unrolled_elementwise_kernel<at::native::(anonymous namespace)::direct_copy_kernel_cuda"
            "(at::TensorIteratorBase&)::{lambda()#2}, at::detail::Array<char*, 2> >(int)",
            "direct_copy · elementwise",
        ),
        (
            "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
            "at::native::sum_functor<float, float, float> > > >(float)",
            "sum · reduce",
        ),
        (
            "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)",
            "vectorized_layer_norm",
        ),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64>(Params)", "cutlass_80_tensorop_s1688gemm_64x64"),
        (
            "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
            "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long)",
            "fused_add_rms_norm",
        ),
        ("Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT128x160x64_MI16x16x1_SN", "Cijk MT128x160x64"),
        ("volta_sgemm_64x64_nt", "volta_sgemm_64x64_nt"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("triton_poi_fused_add_relu_0", "triton_poi_fused_add_relu_0"),
        ("", ""),
        ("<<<", "<<<"),
        ("(", "("),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::add<float>>(int)", "add · elementwise"),
        ("void at::native::reduce_kernel<512, 1, sum>(int)", "sum · reduce"),
        ("void at::native::unrolled_elementwise_kernel<copy_kernel_cuda>(int)", "copy · elementwise"),
        ("void at::native::max_pool_forward_nchw", "max_pool_forward_nchw"),
        ("void at::native::multi_tensor_apply_kernel<float>(int)", "multi_tensor"),
        (
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
            "at::native::GroupNormBackward<float>(at::Tensor const&)::{lambda(float)#2}>(int)",
            "GroupNormBackward · elementwise",
        ),
    ],
)
def test_kernels_say_what_they_do(name: str, short: str) -> None:
    assert short_kernel_name(name) == short


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("aten::conv2d", "conv2d"),
        ("aten::", "aten::"),
        ("nn.Module: Linear_0", "Linear_0"),
        ("/home/me/my code/train.py(14): loss", "train.py(14): loss"),
        (r"C:\work\train.py(14): loss", "train.py(14): loss"),
        ("autograd::engine::evaluate_function: MmBackward0", "MmBackward0"),
        ("my range", "my range"),
    ],
)
def test_operators_and_frames_lose_what_all_have(name: str, short: str) -> None:
    assert short_op_name(name) == short


def test_a_kernel_in_a_line_begins_with_what_it_does_and_its_template_tells_it_apart() -> None:
    div = (
        "void at::native::vectorized_elementwise_kernel<4, "
        "at::native::BinaryFunctor<{0}, at::native::DivFunctor<{0}> > >(int)"
    )
    one, other = (kernel_in_line(div.format(kind)) for kind in ("float", "double"))
    assert one[0] == other[0] == "Div · elementwise"
    assert one[1] == "vectorized_elementwise_kernel<4, BinaryFunctor<float, DivFunctor<float> >>"
    assert one[1] != other[1]
    assert kernel_in_line("volta_sgemm_64x64_nn") == ("volta_sgemm_64x64_nn", "")
    assert kernel_in_line("ncclKernel_Broadcast_RING_LL(ncclWorkElem)") == ("ncclKernel_Broadcast_RING_LL", "")


@pytest.mark.parametrize(
    "name",
    [
        "aten::mm",
        "train.py(3): <lambda>",
        "<built-in method apply of FunctionMeta object at 0x1>",
        "<string>(2): __init__",
        "torch::autograd::CppNode<Lookup>",
        "Memcpy HtoD (Pageable -> Device)",
        "",
    ],
)
def test_other_names_are_left_as_they_are(name: str) -> None:
    assert not is_mangled_long(name)
