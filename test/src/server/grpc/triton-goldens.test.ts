import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askCases, type GrpcGolden } from '../../../../tools/reference/triton/ask-grpc.js';
import { writeGrpcModels } from '../../../../tools/reference/triton/grpc-models.js';
import { GrpcClient } from '../../../../tools/support/grpc-client.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { grpcAddress, type SkeinProcess, startServer } from '../../support/skein-process.js';

const { answers: goldens } = JSON.parse(
  readFileSync(new URL('../../../goldens/triton/grpc.json', import.meta.url), 'utf8'),
) as { answers: GrpcGolden[] };

/** Calls that are answered otherwise, by their numbers, and why. */
const DIFFERENCES: Readonly<Record<number, string>> = {
  2: 'version and extensions are our own',
  10: 'another backend',
  11: 'another backend',
  15: 'another backend',
  16: 'another backend',
  19: 'another backend; fields of GPUs and of optimization are not told',
  37: 'outputs come in the order in which they were asked for',
  88: 'a number without a sign is taken',
  172: 'this log begins with warnings (--log-level)',
};
/** Refusals of the same code in other words. */
const OTHER_WORDS: Readonly<Record<number, string>> = {
  3: 'it is said what is wrong with the message',
  34: 'it is said what is wrong with the message',
  35: 'it is said what is wrong with the message',
  46: 'a type that there is not is refused as such',
  38: "the outputs that there are follow Triton's words",
  47: 'a type that there is not is refused as such',
  48: 'the request is named',
  49: 'the shape that is expected is told',
  50: 'a size below zero is refused as such',
  51: 'the shape is told of, and not the batch size that would come of it',
  52: 'the batch size is refused, and not compared with that of the other input',
  54: 'an input that the model does not have is named',
  85: 'what is missing within a text is told',
  89: 'numbers without a sign are taken, too',
  150: 'contents that no input takes are refused as such',
  174: 'true or false is what is expected',
  180: "where the model would be follows Triton's words",
  181: 'as 180',
  184: 'it is told what is wrong with the configuration',
  186: 'it is told what is missing',
};
/** Calls that end otherwise. */
const OTHER_CODES: Readonly<Record<number, readonly [code: string, why: string]>> = {
  41: ['INVALID_ARGUMENT', 'contents that no input takes are refused; Triton leaves them out'],
  66: ['INVALID_ARGUMENT', 'a number beyond its type is refused; Triton cuts it off'],
  72: ['INVALID_ARGUMENT', 'a number beyond its type is refused; Triton cuts it off'],
  120: ['OK', "an error ends the request: a model's code gives no answers behind it"],
  125: [
    'INTERNAL',
    'a stream ends with an error where it has what is no message; Triton ends it as if all were well',
  ],
  130: ['INVALID_ARGUMENT', 'what is missing is what its client did wrong'],
  131: ['INVALID_ARGUMENT', 'what is missing is what its client did wrong'],
  132: ['INVALID_ARGUMENT', 'a key that is none is what its client did wrong'],
  163: ['UNIMPLEMENTED', 'there is no shared memory of GPUs'],
  169: ['UNIMPLEMENTED', 'there is no tracing to be set, which is said'],
  171: ['INVALID_ARGUMENT', 'a setting that there is not is refused; Triton leaves it out'],
  176: ['INVALID_ARGUMENT', 'a setting that there is not is refused; Triton leaves it out'],
  200: ['NOT_FOUND', 'a service that there is not is unknown, as the protocol of health has it'],
};

const folder = temporaryFolder('skein-grpc-goldens');
let server: SkeinProcess;
let ours: GrpcGolden[];

beforeAll(async () => {
  writeGrpcModels(folder, 'module');
  server = await startServer([
    ...['--model-repository', folder, '--model-control-mode', 'explicit', '--load-model', '*'],
    ...['--allow-model-upload', '--allow-shared-memory', '--server-id', 'triton', '--grpc-port', '0'],
  ]);
  const client = new GrpcClient(grpcAddress(server));
  ours = await askCases(client);
  client.close();
});
afterAll(() => server?.stop());

describe.skipIf(process.platform !== 'linux')('the answers of a Triton over gRPC', () => {
  it('are as many as there are calls', () => {
    expect(ours.map(({ call }) => call)).toEqual(goldens.map(({ call }) => call));
  });

  it.each(goldens.map(({ call }, i) => [i, call] as const))('%i %s', (i) => {
    const [golden, our] = [goldens[i]!, ours[i]!];
    if (i in OTHER_CODES) {
      expect(our).not.toEqual(golden);
      expect(our.code).toBe(OTHER_CODES[i]![0]);
    } else if (i in OTHER_WORDS) {
      expect({ ...our, message: '' }).toEqual({ ...golden, message: '' });
      expect(our.message).not.toBe(golden.message);
      expect(our.message).toMatch(/\S/);
    } else if (i in DIFFERENCES) {
      expect(our).not.toEqual(golden);
      expect(our).toMatchObject({ code: 'OK', message: '' });
    } else expect(our).toEqual(golden);
  });
});
