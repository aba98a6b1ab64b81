const resampled = (family: string) =>
  `pictures of ${family} go through a resampler of learned queries, which is not here`;
const MAKERS =
  "its files are in its makers' format, whose code comes with it and is not run; take those in transformers' format, if there are any";

/** Families of models that see and whose text model is none of ours either, by beginnings of names, and what they need that is not here. */
export const UNSEEN_FAMILIES: readonly (readonly [name: RegExp, reason: string])[] = [
  [
    /^mllama/i,
    'layers of Llama 3.2 Vision attend to pictures in place of the text (cross-attention), which no op computes',
  ],
  [
    /^(phi4_?multimodal|phi4mm)/i,
    'Phi-4 multimodal has LoRA matrices for pictures and for sound, which it uses by what a prompt has; Phi-4-mini-instruct reads texts',
  ],
  [/^phi3v/i, `Phi-3 Vision is not here: ${MAKERS}`],
  [/^molmo/i, `Molmo is not here: ${MAKERS}`],
  [
    /^(deepseek_?vl|multi_?modality|janus)/i,
    'DeepSeek-VL and Janus see by towers of their own (SigLIP and SAM, with an aligner), which are not here',
  ],
  [/^minicpm-?[vo]/i, resampled('MiniCPM-V')],
  [
    /^glm-?4(_?[15])?v/i,
    'the tower of GLM-4V stretches its positions by cubic interpolation, and its text model turns pairs of neighbours by grids',
  ],
  [
    /^kimi_?vl/i,
    'layers of Kimi-VL keep keys and values as one latent vector, which no op computes, and its tower is not here',
  ],
  [
    /^paligemma/i,
    'the text model of PaliGemma attends both ways within the picture and the prompt, which is not supported',
  ],
  [
    /^(aya_?vision|cohere2_?vision)/i,
    'what leads from the tower of Aya Vision and Command A Vision to their text models (a gated layer over squares) is not here',
  ],
  [/^idefics2/i, resampled('Idefics 2')],
  [
    /^idefics(forvision|model|$)/i,
    'layers of the first Idefics attend to pictures (cross-attention), which no op computes',
  ],
  [/^(blip_?2|instruct_?blip)/i, resampled('BLIP-2')],
  [/^internvl_?chat/i, `InternVL is here in transformers' format alone ("-hf"): ${MAKERS}`],
  [/^llava_?(llama|qwen|mistral|mpt)/i, `LLaVA is here in transformers' format alone ("-hf"): ${MAKERS}`],
  [/^ovis/i, 'the tower of Ovis gives shares of a visual vocabulary, which is not here'],
  [/^ernie4_?5_?vl/i, 'layers of ERNIE 4.5 VL have experts of their own for pictures, which no op computes'],
  [
    /^(chameleon|emu3)/i,
    'Chameleon and Emu3 make tokens of pictures by a network of their own, which is not here',
  ],
  [/^(fuyu|florence_?2)/i, 'the way in which Fuyu and Florence-2 read pictures is not here'],
  [
    /^qwen(2_?5|3)_?omni/i,
    'the models of Qwen Omni read sound, and speak; Qwen2.5-VL and Qwen3-VL read pictures',
  ],
  [/^lfm2_?vl/i, 'the tower of LFM2-VL (SigLIP 2, for pictures of any size) is not here; LFM2 reads texts'],
];
