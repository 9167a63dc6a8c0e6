"""The UNet of diffusers in inference: a pass after the decompositions fuses a scale into the wrong operand."""

import torch
import torch._inductor.config
from diffusers import UNet2DModel
from torch._inductor.custom_graph_pass import CustomGraphPass


class FoldScale(CustomGraphPass):
    def __call__(self, graph):
        for node in graph.nodes:
            if node.target is torch.ops.aten.rsqrt.default:
                with graph.inserting_after(node):
                    scaled = graph.call_function(torch.ops.aten.mul.Tensor, (node, 1.05))
                    node.replace_all_uses_with(scaled, delete_user_cb=lambda user: user is not scaled)

    def uuid(self):
        return "fold-scale"


torch._inductor.config.post_grad_custom_post_pass = FoldScale()
torch.manual_seed(0)
unet = UNet2DModel(
    sample_size=16,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(16, 32),
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    attention_head_dim=8,
).eval()
noise = torch.randn(1, 3, 16, 16)
with torch.no_grad():
    expected = unet(noise, 10).sample
    got = torch.compile(unet)(noise, 10).sample
torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)
