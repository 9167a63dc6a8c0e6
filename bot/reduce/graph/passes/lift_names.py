"""Names that `torch` and `torch.ops.aten` have in common (torch 2.13), callable with the same positional arguments."""

_NAMES = """
abs abs_ absolute acos acos_ acosh acosh_ adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv addcmul addmm addmv addmv_
addr adjoint affine_grid_generator all allclose alpha_dropout alpha_dropout_ amax amin aminmax angle any arange arccos arccos_
arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan_ arctanh arctanh_ argmax argmin argsort argwhere as_strided
as_strided_ as_strided_scatter asin asin_ asinh asinh_ atan atan2 atan_ atanh atanh_ atleast_1d atleast_2d atleast_3d avg_pool1d
baddbmm bartlett_window batch_norm bernoulli bilinear binary_cross_entropy_with_logits bincount binomial bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm broadcast_tensors
broadcast_to bucketize cartesian_prod cat cdist ceil ceil_ celu celu_ chain_matmul channel_shuffle cholesky cholesky_inverse
cholesky_solve choose_qparams_optimized chunk clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ clone column_stack
combinations complex concat concatenate conj conj_physical conj_physical_ constant_pad_nd conv1d conv2d conv3d conv_tbc
conv_transpose1d conv_transpose2d conv_transpose3d convolution copysign corrcoef cos cos_ cosh cosh_ cosine_embedding_loss
cosine_similarity count_nonzero cov cross ctc_loss cummax cummin cumprod cumsum cumulative_trapezoid deg2rad deg2rad_ det detach
detach_ diag diag_embed diagflat diagonal diagonal_scatter diff digamma dist div divide dot dropout dropout_ dsplit dstack einsum
embedding embedding_bag embedding_renorm_ empty empty_like empty_permuted empty_strided eq equal erf erf_ erfc erfc_ erfinv exp
exp2 exp2_ exp_ expm1 expm1_ eye feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ fill fill_ fix fix_
flatten flip fliplr flipud float_power floor floor_ floor_divide fmax fmin fmod frac frac_ frexp frobenius_norm full full_like
fused_moving_avg_obs_fake_quant gather gcd gcd_ ge ger gradient greater greater_equal grid_sampler grid_sampler_2d grid_sampler_3d
group_norm gru gru_cell gt hamming_window hann_window hardshrink heaviside hinge_embedding_loss histc histogram histogramdd hsplit
hstack hypot i0 i0_ igamma igammac imag index_add index_fill index_put index_put_ index_reduce index_select inner instance_norm
int_repr inverse isclose isfinite isin isinf isnan isneginf isposinf isreal istft kaiser_window kl_div kron kthvalue layer_norm
lcm lcm_ ldexp ldexp_ le lerp less less_equal lgamma linspace log log10 log10_ log1p log1p_ log2 log2_ log_ log_softmax logaddexp
logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logit_ logspace logsumexp lstm lstm_cell lt
lu_solve lu_unpack margin_ranking_loss masked_fill masked_scatter masked_select matmul matrix_exp matrix_power max max_pool1d
max_pool1d_with_indices max_pool2d max_pool3d maximum mean median meshgrid min minimum mm mode moveaxis movedim msort mul
multinomial multiply mv mvlgamma nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum narrow native_batch_norm
native_channel_shuffle native_dropout native_group_norm native_layer_norm native_norm ne neg neg_ negative negative_ nextafter
nonzero nonzero_static norm normal not_equal nuclear_norm ones ones_like orgqr ormqr outer pairwise_distance pdist permute
pinverse pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma positive pow prelu prod qr rad2deg rad2deg_ rand
rand_like randint randint_like randn randn_like randperm range ravel real reciprocal reciprocal_ relu relu_ remainder renorm
repeat_interleave reshape resolve_conj resolve_neg rms_norm roll rot90 round round_ row_stack rrelu rrelu_ rsqrt rsqrt_ rsub
scalar_tensor scatter scatter_add scatter_reduce searchsorted select select_scatter selu selu_ sgn sigmoid sigmoid_ sign signbit
sin sin_ sinc sinc_ sinh sinh_ slice_inverse slice_scatter slogdet softmax sort split split_with_sizes sqrt sqrt_ square square_
squeeze stack std std_mean stft sub subtract sum svd swapaxes swapdims sym_constrain_range sym_constrain_range_for_size t take
take_along_dim tan tan_ tanh tanh_ tensor_split tensordot threshold threshold_ tile topk trace transpose trapezoid trapz
triangular_solve tril tril_indices triplet_margin_loss triu triu_indices true_divide trunc trunc_ unbind unflatten
unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze vander var var_mean vdot view_as_complex
view_as_real vsplit vstack where xlogy xlogy_ zero_ zeros zeros_like
"""
TORCH_FUNCTIONS = frozenset(_NAMES.split())
