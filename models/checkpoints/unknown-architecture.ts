import { closestName } from '../../base/did-you-mean.js';

const resampled = (family: string) =>
  `pictures of ${family} go through a resampler of learned queries, which is not here`;
const MAKERS =
  "its files are in its makers' format, whose code comes with it and is not run; take those in transformers' format, if there are any";

/** Families of models that see and whose text model is none of ours either, by beginnings of names, and what they need that is not here. */
const UNSEEN_FAMILIES: readonly (readonly [name: RegExp, reason: string])[] = [
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

const STATE_LAYERS =
  'layers of this kind may keep a state in place of keys and values, other than those of Qwen3.5, LFM2 and Mamba2, which no op computes';
const LATENT = 'its layers keep keys and values as one latent vector, which no op computes';
const SHARED_NORM =
  'attention and MLP of a layer both read one norm, a LayerNorm with biases, and the MLP has no gate';
const PLAIN_LAYERS = 'its layers have a LayerNorm with biases, and its MLP has no gate';

/** Architectures that a user may expect, and the operations that they need and no executor has. */
const REASONS: readonly (readonly [name: RegExp, reason: string])[] = [
  ...UNSEEN_FAMILIES,
  [
    /^Deberta(?!V2)/i,
    'the first DeBERTa has one projection of queries, keys and values with biases for two of them; DeBERTa v2 and v3 run',
  ],
  [/^(NewFor|JinaBert|XLMRobertaLoRA|XLMRobertaFlash)/, 'its code comes with it, and is not run'],
  [
    /^llama-?4/i,
    'its layers attend in chunks, scale queries by position, and mix experts that all tokens go to with those that few go to',
  ],
  [/^gemma-?3n/i, 'its layers have several streams (AltUp), and a table of embeddings for each layer'],
  [/^(deepseek_?v?[23]|deepseek[23]|kimi_?k2|glm4_?moe_?lite|minicpm3)/i, LATENT],
  [
    /^minimax_?m2/i,
    'experts are chosen by a sigmoid of their scores with biases, and queries are normed over all heads',
  ],
  [
    /^kimi[-_]?linear/i,
    'its delta rule keeps each dimension of a key by a factor of its own, and its other layers keep one latent vector; no op computes either',
  ],
  [/^(mamba(?!2)|falcon[-_]?mamba|jamba|bamba|plamo_?2|rwkv)/i, STATE_LAYERS],
  [/^(phi(forcausallm|2)|falcon(forcausallm)?$|gptj)/i, SHARED_NORM],
  [
    /^gpt_?neox/i,
    "attention and MLP of a layer both read the layer's input, by a LayerNorm with biases each",
  ],
  [/^bloom/i, 'scores are biased by distance (ALiBi), which no op computes'],
  [/^stablelm/i, 'its layers have a LayerNorm with biases, and a quarter of each head turns'],
  [/^starcoder2/i, PLAIN_LAYERS],
  [/^opt/i, `positions are learned embeddings that begin at 2, the activation is relu, and ${PLAIN_LAYERS}`],
  [/^olmo(forcausallm)?$/i, 'its LayerNorm has no weights, and queries, keys and values may be clamped'],
  [/^exaone(forcausallm)?$/i, 'its tensors have names of their own; EXAONE 4 runs'],
  [/^hunyuan/i, 'layers mix experts that all tokens go to with those that few go to'],
];

const MAX_NEAR = 3;
const MAX_SHOWN = 100;

/** A sentence on an architecture that is not among the known ones: its name, why it is not, and known names near to it. */
export function refusalOfArchitecture(where: string, name: string, known: readonly string[]): string {
  const shown = name.slice(0, MAX_SHOWN);
  const [, reason] = REASONS.find(([pattern]) => pattern.test(name)) ?? [];
  const why = reason === undefined ? '' : `: ${reason}`;
  const near = namesNear(name, known);
  const others = near.length === 0 ? '' : `; near to it are ${near.join(', ')}`;
  return `${where}: architecture ${shown} is not supported${why}${others} (docs/models.md lists all ${known.length}).`;
}

/** Known names with the same beginning, the longest first, else the one that is probably meant. */
function namesNear(name: string, known: readonly string[]): string[] {
  const shared = known
    .map((one) => ({ one, length: sharedBeginning(name.toLowerCase(), one.toLowerCase()) }))
    .filter(({ length }) => length >= 3)
    .sort((a, b) => b.length - a.length);
  if (shared.length > 0) return shared.slice(0, MAX_NEAR).map(({ one }) => one);
  const meant = closestName(stemOf(name), known.map(stemOf));
  return known.filter((one) => stemOf(one) === meant).slice(0, 1);
}

/** The name of the family in that of a class: endings that all share make no names alike. */
const stemOf = (name: string) => name.replace(/(ForCausalLM|ForConditionalGeneration|LMHeadModel)$/, '');

function sharedBeginning(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}
