import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { safetensorsBytes } from '../../../tools/support/safetensors-writer.js';
import { freshFolders } from '../../support/fresh-folders.js';
import {
  TINY_MODEL_CONFIG,
  TINY_SHAPES,
  TINY_TOKENIZER,
  tinyTensors,
  writeTinyModel,
} from '../../support/tiny-checkpoint.js';

const fresh = freshFolders('skein-checkpoint');

describe('openCheckpoint of a folder with safetensors', () => {
  it('gives dimensions, tensors and tokenizer', () => {
    const path = writeTinyModel(fresh());
    const checkpoint = openCheckpoint(path);
    expect(checkpoint).toMatchObject({ path, format: 'safetensors', config: TINY_MODEL_CONFIG });
    expect([...checkpoint.tensors.keys()].sort()).toEqual(Object.keys(TINY_SHAPES).sort());
    expect(checkpoint.tokenizer).toEqual({
      tokenizerJson: TINY_TOKENIZER,
      tokenizerConfig: {},
      chatTemplate: null,
    });
  });

  it('honours the eos ids of generation_config.json, several too', () => {
    const path = writeTinyModel(fresh());
    writeFileSync(join(path, 'generation_config.json'), '{"eos_token_id":[5,2,99]}');
    expect(openCheckpoint(path).config.eosTokenIds).toEqual([5, 2]);
  });

  it('takes the chat template from its own file first, then from tokenizer_config.json', () => {
    const path = writeTinyModel(fresh());
    const config = join(path, 'tokenizer_config.json');
    writeFileSync(config, '{"chat_template":"one"}');
    expect(openCheckpoint(path).tokenizer.chatTemplate).toBe('one');
    const named = [
      { name: 'tool_use', template: 'tools' },
      { name: 'default', template: 'two' },
    ];
    writeFileSync(config, JSON.stringify({ chat_template: named }));
    expect(openCheckpoint(path).tokenizer.chatTemplate).toBe('two');
    writeFileSync(join(path, 'chat_template.jinja'), 'three');
    expect(openCheckpoint(path).tokenizer.chatTemplate).toBe('three');
    writeFileSync(join(path, 'tokenizer_config.json'), '{"chat_template":7}');
    rmSync(join(path, 'chat_template.jinja'));
    expect(() => openCheckpoint(path)).toThrow(/chat_template should be a string/);
  });

  it('ignores tensors that the network does not use, of unknown types too', () => {
    const extra = { name: 'rotary.inv_freq', shape: [1], type: 'I64', data: Buffer.alloc(8) };
    const path = writeTinyModel(fresh(), { tensors: [...tinyTensors(), extra] });
    expect(openCheckpoint(path).tensors.has('rotary.inv_freq')).toBe(false);
  });

  it('refuses tensors of layers that nothing computes with, but for those that say nothing', () => {
    const withTensor = (name: string) => {
      const extra = { name, shape: [1], type: 'F32', data: Buffer.alloc(4) };
      return writeTinyModel(fresh(), { tensors: [...tinyTensors(), extra] });
    };
    for (const name of ['rotary_emb.inv_freq', 'rotary_emb.cos_cached'])
      openCheckpoint(withTensor(`model.layers.0.self_attn.${name}`));
    openCheckpoint(withTensor('model.layers.99.self_attn.q_norm.weight'));
    for (const name of [
      'self_attn.q_norm.weight',
      'self_attn.o_proj.bias',
      'mlp.shared_expert.up_proj.weight',
    ])
      expect(() => openCheckpoint(withTensor(`model.layers.0.${name}`))).toThrow(
        `model.safetensors: tensor model.layers.0.${name} is not supported: llama is computed without it, and the answers would be others.`,
      );
  });

  it('refuses tensors outside of layers that nothing computes with, and names parts that no answer needs', () => {
    const withTensor = (name: string) => {
      const extra = { name, shape: [1], type: 'F32', data: Buffer.alloc(4) };
      return openCheckpoint(writeTinyModel(fresh(), { tensors: [...tinyTensors(), extra] }));
    };
    for (const name of [
      'model.embed_norm.weight',
      'lm_head.bias',
      'model.visual.merger.weight',
      'score.weight',
    ])
      expect(() => withTensor(name)).toThrow(`tensor ${name} is not supported: llama is computed without it`);
    expect(withTensor('model.rotary_emb.inv_freq').leftAside).toEqual([]);
    expect(withTensor('mtp.layers.0.mlp.up_proj.weight').leftAside).toEqual([{ part: 'mtp', tensors: 1 }]);
  });

  it('believes an lm_head that differs from the embedding, whatever tie_word_embeddings says', () => {
    const [embedding] = tinyTensors();
    const opened = (data: Uint8Array) =>
      openCheckpoint(
        writeTinyModel(fresh(), {
          tensors: [...tinyTensors(), { ...embedding!, name: 'lm_head.weight', data }],
        }),
      );
    const same = opened(embedding!.data);
    expect(same).toMatchObject({ config: TINY_MODEL_CONFIG, remarks: [] });
    expect(same.tensors.has('lm_head.weight')).toBe(false);
    const changed = embedding!.data.slice();
    changed[changed.length - 1]! ^= 1;
    const other = opened(changed);
    expect(other.config).toEqual({ ...TINY_MODEL_CONFIG, tieWordEmbeddings: false });
    expect(other.tensors.has('lm_head.weight')).toBe(true);
    expect(other.remarks).toEqual([
      expect.stringMatching(
        /^lm_head\.weight differs from the embedding, although tie_word_embeddings is true/,
      ),
    ]);
  });

  it('changes its hash with any of its files', () => {
    const path = writeTinyModel(fresh());
    const before = openCheckpoint(path).sourceHash;
    expect(openCheckpoint(path).sourceHash).toBe(before);
    const tensors = tinyTensors();
    tensors[3]!.data[5]! ^= 1;
    writeFileSync(join(path, 'model.safetensors'), safetensorsBytes(tensors));
    const after = openCheckpoint(path).sourceHash;
    expect(after).not.toBe(before);
    writeFileSync(join(path, 'generation_config.json'), '{}');
    expect(openCheckpoint(path).sourceHash).not.toBe(after);
  });

  const without = (name: string) => tinyTensors().filter((tensor) => tensor.name !== name);
  const reshaped = (name: string, shape: number[]) =>
    tinyTensors().map((tensor) => (tensor.name === name ? { ...tensor, shape } : tensor));
  const q = 'model.layers.1.self_attn.q_proj.weight';
  const wrong: [string, Parameters<typeof writeTinyModel>[1], RegExp][] = [
    [
      'a missing tensor',
      { tensors: without(q) },
      /model\.safetensors: tensor model\.layers\.1\.self_attn\.q_proj\.weight that.*missing/,
    ],
    [
      'missing output weights',
      { config: { tie_word_embeddings: false } },
      /tensor lm_head\.weight .*missing/,
    ],
    ['missing biases', { config: { attention_bias: true } }, /q_proj\.bias and 7 more/],
    ['a wrong shape', { tensors: reshaped(q, [4, 16]) }, /should have the shape \[8, 8\], found \[4, 16\]/],
    [
      'a norm that is a matrix',
      { tensors: reshaped('model.norm.weight', [1, 8]) },
      /shape \[8\], found \[1, 8\]/,
    ],
    [
      'another vocabulary',
      { config: { vocab_size: 7 } },
      /embed_tokens\.weight should have the shape \[7, 8\], found \[6, 8\]/,
    ],
    ['more layers', { config: { num_hidden_layers: 3 } }, /layers\.2\..* and 8 more/],
    [
      'an unsupported type',
      { tensors: tinyTensors().map((t) => (t.name === q ? { ...t, type: 'I32' } : t)) },
      /has type I32; supported: F32, F16, BF16/,
    ],
    [
      'another architecture',
      { config: { architectures: ['MambaForCausalLM'] } },
      /config\.json: architecture MambaForCausalLM is not supported/,
    ],
    ['no architecture', { config: { architectures: null } }, /architectures should be a list.*found nothing/],
    [
      'an architecture with names near to it',
      { config: { architectures: ['Qwen2OmniForCausalLM'] } },
      /architecture Qwen2OmniForCausalLM is not supported; near to it are Qwen2ForCausalLM, Qwen2\w+, .* \(docs\/models\.md lists all \d+\)\./,
    ],
    [
      'Llama 4',
      { config: { architectures: ['Llama4ForConditionalGeneration'] } },
      /architecture Llama4ForConditionalGeneration is not supported: its layers attend in chunks/,
    ],
    ...[
      ['MllamaForConditionalGeneration', 'layers of Llama 3.2 Vision attend to pictures'],
      ['Phi4MMForCausalLM', 'Phi-4 multimodal has LoRA matrices'],
      ['Phi3VForCausalLM', 'Phi-3 Vision is not here'],
      ['MolmoForCausalLM', 'Molmo is not here'],
      ['DeepseekVLV2ForCausalLM', 'DeepSeek-VL and Janus see by towers of their own'],
      ['MiniCPMV', 'pictures of MiniCPM-V go through a resampler'],
      ['Glm4vForConditionalGeneration', 'the tower of GLM-4V stretches its positions'],
      ['KimiVLForConditionalGeneration', 'layers of Kimi-VL keep keys and values as one latent vector'],
      ['PaliGemmaForConditionalGeneration', 'the text model of PaliGemma attends both ways'],
      ['AyaVisionForConditionalGeneration', 'what leads from the tower of Aya Vision'],
      ['Idefics2ForConditionalGeneration', 'pictures of Idefics 2 go through a resampler'],
      ['IdeficsForVisionText2Text', 'layers of the first Idefics attend to pictures'],
      ['InternVLChatModel', "InternVL is here in transformers' format alone"],
      ['Lfm2VlForConditionalGeneration', 'the tower of LFM2-VL'],
    ].map(
      ([name, reason]) =>
        [
          name!,
          { config: { architectures: [name] } },
          new RegExp(`architecture ${name} is not supported: ${reason}`),
        ] as [string, { config: object }, RegExp],
    ),
    [
      'heads that do not divide',
      { config: { num_key_value_heads: 4, num_attention_heads: 2 } },
      /2 attention heads should be a multiple of the 4/,
    ],
    [
      'a width that is no multiple',
      { config: { num_attention_heads: 3, num_key_value_heads: 1 } },
      /hidden_size should be a multiple of the 3/,
    ],
    ['an odd head', { config: { head_dim: 5 } }, /2 heads of 5 dimensions/],
    [
      'a missing field',
      { config: { hidden_size: undefined } },
      /hidden_size should be a whole number from 1 to \d+, found nothing/,
    ],
    [
      'a field of another kind',
      { config: { num_hidden_layers: '2' } },
      /num_hidden_layers should be .* found "2"/,
    ],
    ['huge dimensions', { config: { num_hidden_layers: 1e9 } }, /num_hidden_layers should be/],
    ['an unknown activation', { config: { hidden_act: 'relu' } }, /hidden_act should be one of silu/],
    [
      'a sliding window of a model that has none',
      { config: { sliding_window: 4096 } },
      /sliding_window should be absent: LlamaForCausalLM has no attention window, found 4096/,
    ],
    [
      'a sliding window that is none',
      { config: { architectures: ['MistralForCausalLM'], sliding_window: 0 } },
      /sliding_window should be a whole number from 1 to/,
    ],
    [
      'layers of several kinds',
      { config: { architectures: ['MistralForCausalLM'], layer_types: ['full_attention'] } },
      /layer_types should be sliding_attention for each layer/,
    ],
    [
      'weights of a quantisation that is not read',
      { config: { quantization_config: { quant_method: 'hqq' } } },
      /quantization_config: quant_method should be one of awq, .*found "hqq"/,
    ],
    [
      'an unknown RoPE',
      { config: { rope_scaling: { rope_type: 'spiral', factor: 2 } } },
      /rope_type should be one of default, linear/,
    ],
    [
      'a number where the parameters of RoPE should be',
      { config: { rope_parameters: 1000003 } },
      /rope_parameters should be an object, found 1000003/,
    ],
    [
      'a RoPE without factor',
      { config: { rope_scaling: { type: 'linear' } } },
      /factor should be a number greater than 0, found nothing/,
    ],
    [
      'factors of another length',
      { config: { rope_scaling: { type: 'longrope', short_factor: [1], long_factor: [1, 1] } } },
      /short_factor should be an array of 2 numbers/,
    ],
    [
      'equal llama3 factors',
      {
        config: { rope_scaling: { rope_type: 'llama3', factor: 2, low_freq_factor: 1, high_freq_factor: 1 } },
      },
      /high_freq_factor should be more than/,
    ],
    [
      'a RoPE for each kind of layer',
      { config: { rope_parameters: { full: { rope_type: 'yarn' } } } },
      /one set of parameters/,
    ],
    [
      'a scaling beside parameters of another',
      {
        config: {
          rope_parameters: { rope_type: 'default', rope_theta: 10_000 },
          rope_scaling: { type: 'linear', factor: 8 },
        },
      },
      /rope_scaling should be absent next to rope_parameters/,
    ],
    ['a theta below 1', { config: { rope_theta: 0.5 } }, /rope theta should be greater than 1/],
    [
      'a rotation of nothing',
      { config: { architectures: ['Phi3ForCausalLM'], partial_rotary_factor: 0.1 } },
      /rotate an even number/,
    ],
    [
      'a part of a head that turns, with scaled RoPE',
      { config: { partial_rotary_factor: 0.5, rope_scaling: { type: 'linear', factor: 2 } } },
      /partial_rotary_factor should be absent or 1 where RoPE is scaled, found 0\.5/,
    ],
    ['eos ids that are none', { config: { eos_token_id: ['x'] } }, /eos_token_id should be a token id/],
  ];
  for (const [what, change, message] of wrong) {
    it(`refuses ${what}`, () => {
      const path = writeTinyModel(fresh(), change);
      expect(() => openCheckpoint(path)).toThrow(CheckpointError);
      expect(() => openCheckpoint(path)).toThrow(message);
    });
  }

  it('refuses folders in which something is missing', () => {
    const path = writeTinyModel(fresh());
    const copy = (name: string) => {
      const directory = fresh();
      cpSync(path, directory, { recursive: true });
      rmSync(join(directory, name));
      return directory;
    };
    expect(() => openCheckpoint(copy('config.json'))).toThrow(/holds safetensors, but no config\.json/);
    expect(() => openCheckpoint(copy('tokenizer.json'))).toThrow(/holds no tokenizer\.json/);
    expect(() => openCheckpoint(copy('model.safetensors'))).toThrow(
      /neither \*\.safetensors nor a \.gguf file/,
    );
    const pickled = copy('model.safetensors');
    writeFileSync(join(pickled, 'pytorch_model.bin'), 'x');
    expect(() => openCheckpoint(pickled)).toThrow(/pytorch_model\.bin is no such format/);
    expect(() => openCheckpoint(join(fresh(), 'nowhere'))).toThrow(/nowhere: no such file or folder/);
    const pipe = join(fresh(), 'pipe.gguf');
    execFileSync('mkfifo', [pipe]);
    expect(() => openCheckpoint(pipe)).toThrow(/pipe\.gguf: is not a regular file/);
    expect(() => openCheckpoint(join(path, 'config.json'))).toThrow(/a model is a folder or a \.gguf file/);
  });

  it('refuses a tokenizer with more tokens than the model', () => {
    const path = writeTinyModel(fresh());
    const tokenizer = { ...TINY_TOKENIZER, added_tokens: [{ id: 6, content: '<extra>' }] };
    writeFileSync(join(path, 'tokenizer.json'), JSON.stringify(tokenizer));
    expect(() => openCheckpoint(path)).toThrow(/tokenizer\.json: has a token with id 6, but .* 6 entries/);
  });
});
