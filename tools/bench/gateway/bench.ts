import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { defineBench } from '../bench.js';
import { type GatewayCost, type GatewayLoad, measureGateway } from './load.js';

const FLAGS = {
  workers: { argument: 'LIST', default: '10,1000,10000', help: 'numbers of workers (default 10,1000,10000)' },
  routing: { argument: 'LIST', default: 'any,cache', help: 'ways of choosing workers (default any,cache)' },
  running: {
    argument: 'N',
    default: '2048',
    help: 'requests of the gateway that run at once (default 2048)',
  },
  waiting: { argument: 'N', default: '256', help: 'requests that wait in it besides (default 256)' },
  tokens: { argument: 'N', default: '100', help: 'tokens of an answer (default 100)' },
  'token-ms': { argument: 'MS', default: '50', help: 'milliseconds between two of them (default 50)' },
  seconds: { argument: 'N', default: '10', help: 'length of each measurement (default 10)' },
  'whole-cards': { help: "each beat has the model's card, as those of workers of before" },
} as const;

const HEAD = ['workers', '`--routing`', 'ms a request', 'of which beats', 'as simulated', 'longest turn'];

function row({ workers, routing }: GatewayLoad, cost: GatewayCost): string[] {
  const { msPerRequest, beatMsPerRequest, simulatedMsPerRequest, longestMs } = cost;
  const times = [msPerRequest.toFixed(2), beatMsPerRequest.toFixed(3), simulatedMsPerRequest.toFixed(2)];
  return [String(workers), `\`${routing}\``, ...times, `${longestMs.toFixed(1)} ms`];
}

export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/server.md',
  sections: ['gateway'],
  async run(flags, output) {
    const rows: string[][] = [];
    const count = (name: 'running' | 'waiting' | 'tokens' | 'token-ms' | 'seconds') =>
      countOf(name, flags[name]);
    for (const routing of flags.routing.split(',') as ('any' | 'cache')[]) {
      for (const workers of flags.workers.split(',').map((text) => countOf('workers', text))) {
        const load: GatewayLoad = {
          ...{ workers, routing, running: count('running'), waiting: count('waiting') },
          ...{ tokens: count('tokens'), tokenMs: count('token-ms'), seconds: count('seconds') },
          wholeCards: flags['whole-cards'],
        };
        const cost = await measureGateway(load);
        rows.push(row(load, cost));
        output.progress(`${workers} workers, ${routing}: ${JSON.stringify(cost)}`);
      }
    }
    output.report({
      section: 'gateway',
      conditions: `${flags.running} answers of ${flags.tokens} tokens at once, a token every ${flags['token-ms']} ms, ${flags.waiting} requests waiting besides`,
      lines: [markdownTable(HEAD, rows)],
    });
  },
});
