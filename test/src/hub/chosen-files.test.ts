import { describe, expect, it } from 'vitest';
import { chooseAdapterFiles, chooseFiles, isComplete } from '../../../src/hub/chosen-files.js';
import { repositoryOf } from '../../../src/hub/repository.js';

const choose = (name: string, files: string[]) => chooseFiles(files, repositoryOf(name));
const SIDE = ['config.json', 'tokenizer.json', 'tokenizer_config.json'];

describe('of a repository with safetensors', () => {
  it('one file of weights is enough, with what lies beside it', () => {
    const all = [
      ...SIDE,
      'model.safetensors',
      'model-00001-of-00002.safetensors',
      'consolidated.safetensors',
      'LICENSE',
    ];
    expect(choose('a/b', all)).toEqual({
      paths: [...SIDE.slice(0, 1), ...SIDE.slice(1), 'model.safetensors'],
      gguf: null,
    });
  });

  it('all parts are taken, and the index', () => {
    const parts = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'];
    const index = 'model.safetensors.index.json';
    const chosen = choose('a/b', ['adapter_model.safetensors', ...parts, index, 'config.json']);
    expect(chosen.paths).toEqual(['config.json', index, ...parts]);
    expect(isComplete(chosen)).toBe(true);
    expect(isComplete({ ...chosen, paths: chosen.paths.slice(0, -1) })).toBe(false);
    expect(isComplete({ ...chosen, paths: chosen.paths.slice(1) })).toBe(false);
  });

  it('what says how pictures are prepared comes with them', () => {
    const pictures = ['preprocessor_config.json', 'processor_config.json'];
    const all = ['config.json', ...pictures, 'video_preprocessor_config.json', 'model.safetensors'];
    expect(choose('a/b', all).paths).toEqual(['config.json', ...pictures, 'model.safetensors']);
  });

  it('other names are taken where there are none of these', () => {
    expect(
      choose('a/b', ['weights.safetensors', 'adapter_x.safetensors', 'sub/x.safetensors']).paths,
    ).toEqual(['weights.safetensors']);
  });
});

describe('of a repository with GGUF files', () => {
  it.each([
    [['mmproj-Q8_0.gguf', 'mmproj-F32.gguf', 'mmproj-BF16.gguf', 'm.mmproj-f16.gguf'], 'm.mmproj-f16.gguf'],
    [['mmproj-Q8_0.gguf', 'mmproj-F32.gguf'], 'mmproj-F32.gguf'],
    [['mmproj-model.gguf', 'sub/mmproj-F16.gguf'], 'mmproj-model.gguf'],
    [['mmproj-a.gguf', 'mmproj-b.gguf'], null],
    [['sub/mmproj-F16.gguf'], null],
  ])('of the towers %j next to it comes %j', (towers, expected) => {
    const chosen = choose('a/b', ['m-Q8_0.gguf', ...towers]);
    expect(chosen.paths).toEqual([...(expected === null ? [] : [expected]), 'm-Q8_0.gguf']);
    expect(chosen.gguf).toBe('m-Q8_0.gguf');
  });

  const files = [
    'm-Q4_K_M.gguf',
    'm.q8_0.gguf',
    'm-IQ4_XS.gguf',
    'sub/m-BF16.gguf',
    'mmproj-F16.gguf',
    'README.md',
  ];

  it.each([
    ['a/b:Q4_K_M', 'm-Q4_K_M.gguf'],
    ['a/b:q8_0', 'm.q8_0.gguf'],
    ['a/b:iq4_xs', 'm-IQ4_XS.gguf'],
    ['a/b:BF16', 'sub/m-BF16.gguf'],
    ['a/b', 'm.q8_0.gguf'],
  ])('%s is %s', (name, gguf) => {
    const chosen = choose(name, [...files, 'config.json']);
    const tower = gguf.startsWith('sub/') ? [] : ['mmproj-F16.gguf'];
    expect(chosen).toEqual({ paths: ['config.json', ...tower, gguf], gguf });
    expect(isComplete(chosen)).toBe(true);
  });

  it('the parts of one are all of it, and the first is what is loaded', () => {
    const parts = [1, 2, 3].map((i) => `big-Q4_K_M-0000${i}-of-00003.gguf`);
    expect(choose('a/b', [...parts, 'mmproj-F16.gguf'])).toEqual({
      paths: ['mmproj-F16.gguf', ...parts],
      gguf: parts[0],
    });
    expect(choose('a/b:Q4_K_M', [...parts, 'small-Q8_0.gguf'])).toEqual({ paths: parts, gguf: parts[0] });
    expect(isComplete({ paths: parts, gguf: parts[0]! })).toBe(true);
    expect(isComplete({ paths: parts.slice(0, 2), gguf: parts[0]! })).toBe(false);
    expect(isComplete({ paths: ['mmproj-F16.gguf', ...parts], gguf: parts[0]! })).toBe(true);
    expect(isComplete({ paths: ['mmproj-F16.gguf', ...parts.slice(1)], gguf: parts[0]! })).toBe(false);
  });

  it('the only one is meant whatever it is called, and GGUF where it is asked for beside safetensors', () => {
    expect(choose('a/b', ['whatever.gguf']).gguf).toBe('whatever.gguf');
    expect(choose('a/b:Q4_0', ['model.safetensors', 'm-Q4_0.gguf']).gguf).toBe('m-Q4_0.gguf');
    expect(choose('a/b', ['model.safetensors', 'm-Q4_0.gguf']).gguf).toBe(null);
  });

  it.each([
    [
      'a/b:Q5_K_M',
      files,
      /^a\/b has no GGUF file of Q5_K_M; it has IQ4_XS, Q4_K_M, Q8_0, BF16\. Did you mean a\/b:Q4_K_M\?$/,
    ],
    ['a/b:Q4_0', ['model.safetensors'], /^a\/b holds no GGUF file, so :Q4_0 names nothing in it;/],
    [
      'a/b',
      ['x.gguf', 'y.gguf'],
      /^a\/b has several GGUF files; name one as a\/b:QUANT, of x.gguf, y.gguf\.$/,
    ],
    [
      'a/b:F16',
      ['1/m-F16.gguf', '2/m-F16.gguf'],
      /holds F16 in 2 files .*not the parts of one model; download the one you mean and name its path\.$/,
    ],
    [
      'a/b',
      ['pytorch_model.bin'],
      /^a\/b holds neither \*.safetensors nor a .gguf file \(pytorch_model.bin is no such format\)\.$/,
    ],
    ['a/b', [], /^a\/b holds neither/],
  ])('%s of %o is refused', (name, all, message) => {
    expect(() => choose(name, all)).toThrow(message);
  });
});

describe('of a repository with a LoRA adapter', () => {
  const chosen = (name: string, files: string[]) => chooseAdapterFiles(files, repositoryOf(name));
  const PEFT = ['adapter_config.json', 'adapter_model.safetensors'];

  it('the two files of PEFT are taken, and no more', () => {
    const all = [...SIDE, ...PEFT, 'README.md', 'checkpoint-10/adapter_model.safetensors', 'x.gguf'];
    expect(chosen('a/b', all)).toEqual({ paths: PEFT, gguf: null });
  });

  it('or a GGUF file, by its precision where there are several', () => {
    expect(chosen('a/b', ['b-lora-f16.gguf', 'adapter_config.json']).gguf).toBe('b-lora-f16.gguf');
    expect(chosen('a/b:F32', [...PEFT, 'b-F16.gguf', 'b-F32.gguf'])).toEqual({
      paths: ['b-F32.gguf'],
      gguf: 'b-F32.gguf',
    });
  });

  it('or nothing, which is said with a reason', () => {
    expect(() => chosen('a/b', ['adapter_config.json', 'adapter_model.bin'])).toThrow(
      'a/b holds neither adapter_config.json and adapter_model.safetensors nor a .gguf file (adapter_model.bin may run code when it is read, and is not): no LoRA adapter.',
    );
    expect(() => chosen('a/b', [...SIDE, 'model.safetensors'])).toThrow('a .gguf file: no LoRA adapter.');
  });
});
