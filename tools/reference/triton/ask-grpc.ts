import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { GrpcClient } from '../../support/grpc-client.js';
import { grpcCases, REGIONS } from './grpc-cases.js';

/** What came of a call. */
export interface GrpcGolden {
  call: string;
  /** Null where the call has failed. Bytes are base64. */
  answers: unknown[];
  code: string;
  message: string;
}

/**
 * Makes all calls, one after the other, with files of shared memory; the last golden has what is in those
 * then.
 */
export async function askCases(client: GrpcClient): Promise<GrpcGolden[]> {
  const fileOf = (name: string) => `/dev/shm/${name}`;
  for (const [name, values] of Object.entries(REGIONS))
    writeFileSync(fileOf(name), Buffer.from(values.buffer));
  try {
    const goldens: GrpcGolden[] = [];
    for (const [method, request] of grpcCases) goldens.push(await ask(client, method, request));
    const written = readFileSync(fileOf('skein_case_outputs')).toString('base64');
    goldens.push({ call: 'what is in the region of outputs', answers: [written], code: 'OK', message: '' });
    return goldens;
  } finally {
    for (const name of Object.keys(REGIONS)) rmSync(fileOf(name), { force: true });
  }
}

async function ask(
  client: GrpcClient,
  method: string,
  request: object | readonly object[],
): Promise<GrpcGolden> {
  if (Array.isArray(request)) {
    const { answers, code, message } = await client.exchange(method, request);
    return { call: `${method} of ${request.length}`, answers: answers.map(plain), code, message };
  }
  const answer = await client.call(method, request);
  if ('code' in answer) return { call: method, answers: [], ...answer };
  return { call: method, answers: [plain(answer.answer)], code: 'OK', message: '' };
}

/** Bytes as base64, for a file of JSON. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
}
