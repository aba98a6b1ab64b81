import { describe, expect, it } from 'vitest';
import { packElements } from '../../../../callbacks/infer/byte-elements.js';
import type { InferRequest, InferTensor, InferTerms } from '../../../../callbacks/infer/infer-types.js';
import { QueueFullError } from '../../../../callbacks/token-request.js';
import { UNOBSERVED } from '../../../../src/serving/request-observer.js';
import { GeneratorInfer } from '../../../../src/serving/texts/generator-infer.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { base64Of, dataUrl, IMAGE, seeingToy } from '../../support/fake-sight.js';
import { BOS_TOKEN, bytesOf, TOY_VOCAB } from '../../support/toy-codec.js';
import { say, toyModel } from '../../support/toy-server.js';

const seen = (one: number) => [TOY_VOCAB + one, TOY_VOCAB + one + 1];
const texts = (name: string, ...elements: (string | Uint8Array)[]): InferTensor => ({
  name,
  datatype: 'BYTES',
  shape: [elements.length],
  data: packElements(elements),
});

function modelOf(maxActive?: number, isBlind = false) {
  const engine = new FakeEngine(() => say('x'), maxActive);
  const { fields, decoded, read } = seeingToy();
  const { sight, codec } = fields;
  const placed = {
    ...codec,
    encodeText: (text: string) => [
      BOS_TOKEN,
      ...text.split(/(<i>)/).flatMap((piece) => (piece === '<i>' ? [IMAGE] : bytesOf(piece))),
    ],
  };
  const model = toyModel(engine, { codec: placed, ...(isBlind ? {} : { sight }) });
  const generating = {
    observedName: 'toy',
    model,
    adapters: null,
    maxLogProbs: 0,
    fingerprint: () => null,
    observe: UNOBSERVED,
  };
  const activity = () => ({ waiting: 0, running: 0, instances: [], restarts: 0 });
  const infer = new GeneratorInfer('toy', '1', generating, activity);
  const ask = (inputs: readonly InferTensor[], terms?: Partial<InferTerms>) =>
    new Promise<void>((resolve, reject) => {
      const request: InferRequest = {
        id: '',
        inputs,
        outputs: null,
        parameters: {},
        sequence: null,
        priority: 0,
        timeoutUs: 0,
        terms: terms as InferTerms | undefined,
      };
      infer.infer(request, { response: () => {}, end: () => resolve(), fail: reject });
    });
  return { engine, infer, ask, decoded, read };
}

describe('pictures as a tensor of bytes', () => {
  it('stand before the text, or where it has places for them, as files, base64 or data: URLs', async () => {
    const { engine, ask, read } = modelOf();
    const images = texts('image', Uint8Array.of(0xff, 5), base64Of(9), dataUrl(7));
    await ask([texts('text_input', 'ab'), images]);
    await ask([texts('text_input', 'a<i>b<i><i>c'), images]);
    expect(read.slice(0, 3)).toEqual([
      { file: [0xff, 5], length: 2, place: 'image[0]' },
      { file: [9], length: 1, place: 'image[1]' },
      { file: [7], length: 1, place: 'image[2]' },
    ]);
    const [first, second] = engine.requests.map(({ promptTokens }) => [...promptTokens]);
    expect(first).toEqual([BOS_TOKEN, ...seen(0xff), ...seen(9), ...seen(7), ...bytesOf('ab')]);
    expect(second).toEqual([
      BOS_TOKEN,
      ...bytesOf('a'),
      ...seen(0xff),
      ...bytesOf('b'),
      ...seen(9),
      ...seen(7),
      ...bytesOf('c'),
    ]);
    expect(engine.requests[1]!.imageGrids).toEqual([
      [2, 1, 2],
      [5, 1, 2],
      [7, 1, 2],
    ]);
    expect(engine.requests[1]!.promptEmbeddings).toHaveLength(6);
  });

  it('are none where the tensor is empty', async () => {
    const { engine, ask } = modelOf();
    await ask([texts('text_input', 'a'), texts('image')]);
    expect([...engine.requests[0]!.promptTokens]).toEqual([BOS_TOKEN, 97]);
  });

  it.each<[string, InferTensor[], RegExp]>([
    [
      'places and pictures of other numbers',
      [texts('text_input', 'a<i>b'), texts('image', base64Of(5), base64Of(9))],
      /'text_input' has 1 places of pictures \(<i>\), and 'image' has 2/,
    ],
    [
      'more than sixteen',
      [texts('text_input', 'a'), texts('image', ...Array.from({ length: 17 }, () => base64Of(5)))],
      /17 pictures, and may have 16/,
    ],
    [
      'no picture',
      [texts('text_input', 'a'), texts('image', Uint8Array.of(0))],
      /image\[0\]: it is no picture/,
    ],
    ['an address', [texts('text_input', 'a'), texts('image', 'data:x')], /'image\[0\]' is no data: URL/],
    ['an empty file', [texts('text_input', 'a'), texts('image', '')], /'image\[0\]' .*is empty/],
    [
      'tokens',
      [
        { name: 'input_ids', datatype: 'INT32', shape: [1, 1], data: new Uint8Array(4) },
        { name: 'request_output_len', datatype: 'INT32', shape: [1], data: Uint8Array.of(4, 0, 0, 0) },
        texts('image', base64Of(5)),
      ],
      /'image' is given with 'input_ids'/,
    ],
  ])('are refused: %s', async (_, inputs, sentence) => {
    const { ask, engine } = modelOf();
    await expect(ask(inputs)).rejects.toThrow(sentence);
    expect(engine.requests).toEqual([]);
  });

  it('are an input of models that see, and refused by others with a reason', async () => {
    const { infer } = modelOf();
    expect(infer.config.input.find(({ name }) => name === 'image')).toMatchObject({
      data_type: 'TYPE_STRING',
      dims: [-1],
      optional: true,
    });
    expect(infer.config.parameters!.input_modalities).toEqual({ string_value: 'text,image' });
    const blind = modelOf(undefined, true);
    expect(blind.infer.config.input.map(({ name }) => name)).not.toContain('image');
    expect(blind.infer.config.parameters!.input_modalities).toEqual({ string_value: 'text' });
    await expect(blind.ask([texts('text_input', 'a'), texts('image', base64Of(5))])).rejects.toThrow(
      "'image' has a picture, which is not taken: the model reads text alone.",
    );
  });

  it('are decoded once the limits of the key, and the queue, have let their request in', async () => {
    const inputs = [texts('text_input', 'a'), texts('image', base64Of(5))];
    const full = modelOf(0);
    await expect(full.ask(inputs)).rejects.toMatchObject({
      kind: 'unavailable',
      cause: expect.any(QueueFullError),
    });
    const limited = modelOf();
    const costs: unknown[] = [];
    const held: number[] = [];
    const terms: Partial<InferTerms> = {
      caller: 'alice',
      hold: (bytes) => void held.push(bytes),
      admit: (cost) => {
        costs.push(cost);
        return Promise.reject(new Error('no more'));
      },
    };
    await expect(limited.ask(inputs, terms)).rejects.toThrow('no more');
    expect(costs).toEqual([{ promptTokens: 4, outputTokens: 16, answers: 1 }]);
    expect(held).toEqual([100]);
    expect([full.decoded, limited.decoded]).toEqual([[], []]);
  });
});
