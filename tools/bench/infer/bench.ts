import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { countOf, type FlagValues, listOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { defineBench } from '../bench.js';
import { positiveOf, roundsFlag, secondsFlag } from '../flags.js';

const FLAGS = {
  servers: {
    argument: 'NAME=URL,...',
    default: '',
    help: 'servers of the Open Inference Protocol that run, the first one compared with the others; http:// or grpc://',
  },
  model: {
    argument: 'NAME',
    default: 'identity',
    help: 'a model from INPUT0 of FP32 [-1] to itself (default identity)',
  },
  clients: { argument: 'LIST', default: '1,8,32,128', help: 'clients at once (default 1,8,32,128)' },
  floats: { argument: 'N', default: '16', help: 'numbers of a request (default 16)' },
  table: {
    argument: 'NAME',
    default: 'infer',
    help: "the document's table: infer, infer-large, infer-onnx, infer-grpc or infer-sequences (default infer)",
  },
  sequence: {
    argument: 'N',
    default: '0',
    help: 'requests of a sequence, of which each client sends one after the other; 0, the default: no sequences',
  },
  binary: { argument: 'yes|no', default: 'no', help: 'tensors as binary data (default no: JSON)' },
  ...secondsFlag(3),
  ...roundsFlag(3),
} as const;
const TABLES = ['infer', 'infer-large', 'infer-onnx', 'infer-grpc', 'infer-sequences'];
type Flags = FlagValues<typeof FLAGS>;

interface Measured {
  perSecond: number;
  p50: number;
  p99: number;
}

interface Side {
  name: string;
  url: string;
  /** One entry a round. */
  measured: Measured[];
}

const CLIENT = fileURLToPath(new URL('./ask-tensors.mjs', import.meta.url));

async function measure(url: string, clients: number, flags: Flags): Promise<Measured> {
  const asked = {
    url,
    clients,
    model: flags.model,
    floats: countOf('floats', flags.floats),
    seconds: positiveOf('seconds', flags.seconds),
    isBinary: flags.binary === 'yes',
    length: lengthOf(flags),
  };
  const { stdout } = await promisify(execFile)(process.execPath, [CLIENT, JSON.stringify(asked)]);
  return JSON.parse(stdout) as Measured;
}

function lengthOf({ sequence }: Flags): number {
  return sequence === '0' ? 0 : countOf('sequence', sequence);
}

function sidesOf({ servers }: Flags): Side[] {
  const sides = listOf(servers).map((text): Side => {
    const [name = '', url = ''] = text.split(/=(.*)/s);
    return { name, url: url.replace(/\/$/, ''), measured: [] };
  });
  if (sides.length > 0 && sides.every(({ name, url }) => name !== '' && url !== '')) return sides;
  throw new Error('--servers: expected NAME=URL of servers that run, such as skein=http://127.0.0.1:8000.');
}

function tableOf({ table }: Flags): string {
  if (TABLES.includes(table)) return table;
  throw new Error(`--table: ${table} is given; ${TABLES.join(', ')} are expected.`);
}

/** Requests for tensors a second, and what each took: servers of the protocol side by side, with equal models. */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: TABLES,
  async run(flags, { progress, report }) {
    const rows: string[][] = [];
    let names: string[] = [];
    for (const text of listOf(flags.clients)) {
      const clients = countOf('clients', text);
      const sides = sidesOf(flags);
      names = sides.map(({ name }) => name);
      await takeRounds(sides, countOf('rounds', flags.rounds), async ({ url, name, measured }, round) => {
        measured.push(await measure(url, clients, flags));
        progress(`${clients} clients: round ${round + 1} of ${flags.rounds}, ${name}`);
      });
      const of = (side: Side, figure: keyof Measured) => median(side.measured.map((one) => one[figure]));
      const first = of(sides[0]!, 'perSecond');
      rows.push([
        String(clients),
        ...sides.map(
          (side) =>
            `${of(side, 'perSecond').toFixed(0)} (${of(side, 'p50').toFixed(1)}, ${of(side, 'p99').toFixed(1)})`,
        ),
        ...sides.slice(1).map((side) => (first / of(side, 'perSecond')).toFixed(2)),
      ]);
    }
    const [ours, ...others] = names;
    const overHttp = flags.binary === 'yes' ? 'binary data' : 'JSON';
    const isOverGrpc = listOf(flags.servers).some((text) => text.includes('=grpc://'));
    const form = isOverGrpc ? `${overHttp} over HTTP, raw over gRPC` : overHttp;
    const length = lengthOf(flags);
    const what = length === 0 ? 'requests' : 'sequences';
    const asked = length === 0 ? '' : `sequences of ${length} requests, each with `;
    report({
      section: tableOf(flags),
      conditions: `${asked}${flags.floats} floats in ${form}; medians of ${flags.rounds} rounds of ${flags.seconds} s in turns`,
      lines: [
        markdownTable(
          [
            'clients',
            ...names.map((name) => `${name}: ${what}/s (ms: median, 99 %)`),
            ...others.map((name) => `${ours} / ${name}`),
          ],
          rows,
        ),
      ],
    });
  },
});
