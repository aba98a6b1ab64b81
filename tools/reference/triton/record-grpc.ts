// Asks a Triton the calls of grpc-cases.ts, and writes its answers to test/goldens/triton/grpc.json:
//
//     npx tsx tools/reference/triton/write-grpc-models.ts DIR
//     tritonserver --model-repository DIR --model-control-mode explicit --load-model '*' ...          (as record.mjs says)
//     npx tsx tools/reference/triton/record-grpc.ts localhost:9001
import { writeFileSync } from 'node:fs';
import { GrpcClient } from '../../support/grpc-client.js';
import { askCases } from './ask-grpc.js';

const [address = ''] = process.argv.slice(2);
const client = new GrpcClient(address);
const metadata = await client.call('ServerMetadata', {});
const { version } = ('answer' in metadata ? metadata.answer : {}) as { version?: string };
const answers = await askCases(client);
client.close();
const file = new URL('../../../test/goldens/triton/grpc.json', import.meta.url);
writeFileSync(file, `${JSON.stringify({ server: `tritonserver ${version}`, answers }, null, 1)}\n`);
