import { describe, expect, it } from 'vitest';
import type { InferParameters, InferTensor } from '../../../../callbacks/infer/infer-types.js';
import { TEXT_PARAMETERS, withParameterInputs } from '../../../../src/serving/texts/parameter-inputs.js';
import { textInputs } from '../../../../src/serving/texts/text-inputs.js';

const config = { name: 'm', input: textInputs(false), max_batch_size: 0 };
const request = (parameters: InferParameters, inputs: readonly InferTensor[] = []) => ({
  id: '',
  inputs,
  outputs: null,
  parameters,
  sequence: null,
  priority: 0,
  timeoutUs: 0,
});
const read = (parameters: InferParameters, inputs?: readonly InferTensor[]) =>
  withParameterInputs(config, request(parameters, inputs), TEXT_PARAMETERS);
const bytes = (values: ArrayBufferView) => new Uint8Array(values.buffer);

describe('parameters of a model of texts', () => {
  it.each([
    ['max_tokens', 8, 'INT32', bytes(Int32Array.of(8))],
    ['end_id', -1, 'INT32', bytes(Int32Array.of(-1))],
    ['early_stopping', true, 'INT32', bytes(Int32Array.of(1))],
    ['temperature', 0.5, 'FP32', bytes(Float32Array.of(0.5))],
    ['top_p', 1, 'FP32', bytes(Float32Array.of(1))],
    ['seed', 2n ** 63n + 1n, 'UINT64', bytes(BigUint64Array.of(2n ** 63n + 1n))],
    ['seed', 7, 'UINT64', bytes(BigUint64Array.of(7n))],
    ['stream', true, 'BOOL', Uint8Array.of(1)],
    ['stop_words', 'ab', 'BYTES', Uint8Array.of(2, 0, 0, 0, 97, 98)],
  ] as const)('%s of %s is the input of that name', (name, value, datatype, data) => {
    const { inputs, parameters } = read({ [name]: value, lora_name: 'x' });
    expect(inputs).toEqual([{ name, datatype, shape: [1], data }]);
    expect(parameters).toEqual({ lora_name: 'x' });
  });

  it.each([
    ['max_tokens', 1.5, "parameter 'max_tokens' is 1.5; one element of INT32 is expected"],
    ['max_tokens', 2 ** 31, /2147483648; one element of INT32/],
    ['max_tokens', '8', /'8'; one element of INT32/],
    ['seed', -1, /-1; one element of UINT64/],
    ['seed', 2n ** 64n, /18446744073709551616; one element of UINT64/],
    ['temperature', true, /true; one element of FP32/],
    ['stream', 1, /1; one element of BOOL/],
    ['text_input', 5, /5; one element of BYTES/],
    ['input_ids', 5, "parameter 'input_ids' is 5; it is taken as an input alone"],
    ['lora_nam', 'a', "'lora_nam' is no parameter that model 'm' takes; did you mean 'lora_name'?"],
    ['max_tokns', 8, /did you mean 'max_tokens'/],
    ['constructor', 8, "'constructor' is no parameter that model 'm' takes"],
    ['x'.repeat(10_000), 8, `'${'x'.repeat(64)}' is no parameter that model 'm' takes`],
  ] as const)('%s of %s is refused', (name, value, message) => {
    expect(() => read({ [name]: value })).toThrow(message);
  });

  it('are refused beside the input of the same name', () => {
    const [first] = read({ max_tokens: 8 }).inputs;
    expect(() => read({ max_tokens: 8 }, [first!])).toThrow(
      "'max_tokens' is given as an input and as a parameter; one of them is expected",
    );
  });

  it('have the batch dimension of a model that has one, and cost nothing where there are none', () => {
    const batched = { ...config, input: textInputs(true), max_batch_size: 1 };
    expect(withParameterInputs(batched, request({ top_k: 1 }), []).inputs[0]!.shape).toEqual([1, 1]);
    const plain = request({ lora_name: 'a' });
    expect(withParameterInputs(config, plain, TEXT_PARAMETERS)).toBe(plain);
  });
});
