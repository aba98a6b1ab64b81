import { afterAll, beforeAll, expect, it } from 'vitest';
import { GrpcClient } from '../../../../tools/support/grpc-client.js';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import { grpcAddress, type SkeinProcess, startServer } from '../../support/skein-process.js';

let server: SkeinProcess;
let client: GrpcClient;
beforeAll(async () => {
  server = await startServer(['--model', `llm=${tinyModelPath('gqa')}`, '--grpc-port', '0']);
  client = new GrpcClient(grpcAddress(server));
});
afterAll(() => {
  client?.close();
  return server?.stop();
});

const raw = (...values: number[]) => Buffer.from(Int32Array.from(values).buffer);
const PROMPT = [1, 87, 85, 270, 201];
const asked = (isStreamed: boolean) => ({
  model_name: 'llm',
  inputs: [
    { name: 'input_ids', datatype: 'INT32', shape: [1, 5] },
    { name: 'max_tokens', datatype: 'INT32', shape: [1] },
    { name: 'stream', datatype: 'BOOL', shape: [1] },
  ],
  raw_input_contents: [raw(...PROMPT), raw(4), Buffer.of(Number(isStreamed))],
});

interface Answer {
  infer_response: Response;
}
interface Response {
  outputs: { name: string }[];
  parameters: Record<string, { bool_param?: boolean }>;
  raw_output_contents: Buffer[];
}
const idsOf = ({ outputs, raw_output_contents }: Response) => {
  const data = raw_output_contents[outputs.findIndex(({ name }) => name === 'output_ids')]!;
  return [...new Int32Array(new Uint8Array(data).buffer)];
};

it('raw tensors over gRPC are read as they are, and streamed to the last piece, which says so', async () => {
  const whole = await client.call('ModelInfer', asked(false));
  const all = idsOf((whole as unknown as { answer: Response }).answer);
  expect([all.length, all.slice(0, 5)]).toEqual([9, PROMPT]);
  const { answers, code } = await client.exchange('ModelStreamInfer', [asked(true)]);
  expect(code).toBe('OK');
  const pieces = (answers as unknown as Answer[]).map((answer) => answer.infer_response);
  expect(pieces.flatMap(idsOf)).toEqual(all.slice(5));
  const finals = pieces.map(({ parameters }) => parameters.triton_final_response?.bool_param ?? false);
  expect(finals).toEqual(pieces.map((_, i) => i === pieces.length - 1));
  expect(pieces.length).toBeGreaterThan(1);
});
