import { Command, Option } from 'commander';
import { GATEWAY_COST, type GatewayCost } from '../../cluster/simulation/gateway-loop.js';
import { CAPACITY_POLICIES } from '../../scheduler/tokens/types.js';
import { helpBehind } from '../terminal/help.js';
import type { SimulateFlags } from './simulate.js';

const POLICIES = `${CAPACITY_POLICIES.slice(0, -1).join(', ')} or ${CAPACITY_POLICIES.at(-1)}`;

const SIMULATE_HELP = `
FILE.json:
  policy              ${POLICIES}
  numBlocks           blocks of the KV pool
  tokensPerBlock      tokens of one block
  maxNumRequests      most requests that run at once
  maxBatchSize        most requests of one iteration; default maxNumRequests
  maxNumTokens        most tokens of one iteration; default unlimited
  chunk               {unit, policy: FIRST_COME_FIRST_SERVED, EQUAL_PROGRESS or SHORTEST_FIRST, maxContextLength?};
                      absent: off
  enableBlockReuse    prompts with equal beginnings share blocks; default false
  maxWaitIterations   iterations after which a waiting request goes before all later ones; default: no limit
  startHorizon        MAX_UTILIZATION: tokens that a request must have room for when it starts; default: one step
  requests            [{id, arrivalIteration, promptLength or tokens, maxNewTokens, beamWidth?, priority?,
                      draftLength?}]

A dynamic batcher, with --batcher:
  CONFIG              max_batch_size, dynamic_batching and instance_group are read of it; as JSON:
                      {"max_batch_size": 8, "dynamic_batching": {"max_queue_delay_microseconds": 2000}}
  lines of --trace    {at_us, rows?, priority?, timeout_us?, shape?}: requests of one shape go into one batch

  skein simulate --batcher models/resnet --rate 500 --batch-us 4000 --row-us 250

Many workers, with --workers: --routing says who decides where a request goes.
  random, fewest-requests   a router sends it there at once
  queue                     it waits until a worker asks for it: skein gateway --routing any and skein work
  queue-cache               it waits until a worker has room, and goes to the one of these where it costs least:
                            skein gateway --routing cache
  cache                     a router that receives what the workers' caches hold sends it where it costs least

  skein simulate --workers 8 --rate 8 --requests 3000 --prefixes 40 --deaths 3

Exit codes: 2 for a file that cannot be read or a field that is wrong, 1 for a request that can never run.
`;

const us = (cost: keyof GatewayCost) => 1000 * GATEWAY_COST[cost];

export function simulateCommand(): Command {
  const command = new Command('simulate')
    .description(
      'run the schedulers and the KV block manager, a dynamic batcher, or many workers, without a model',
    )
    .argument('[FILE.json]', 'policy, pool and requests')
    .option('--json', 'print every iteration, or what the batcher did, as JSON instead of a chart')
    .option('--batcher <CONFIG>', "in place of FILE.json: a model's folder, its config file, or JSON")
    .option('--workers <N>', 'in place of FILE.json: N workers of a router or a work queue')
    .option('--rate <N>', 'requests a second; default 1000, with --workers 1 for each of them')
    .addOption(
      new Option(
        '--arrivals <KIND>',
        'when requests arrive: at random times, or evenly; default poisson',
      ).choices(['poisson', 'constant']),
    )
    .option('--requests <N>', 'requests to draw; default 10000')
    .option('--rows <LIST>', 'rows of a request, drawn from a list such as 1,1,4; default 1')
    .option('--trace <FILE>', 'requests in place of drawn ones: a JSON object a line')
    .option('--batch-us <N>', 'microseconds that a batch takes; default 1000')
    .option('--row-us <N>', 'microseconds more for each of its rows; default 100')
    .option('--instances <N>', 'instances of the model of --batcher; default: as its configuration has them')
    .option(
      '--routing <LIST>',
      'random, fewest-requests, queue, queue-cache, cache with commas between them; default all',
    )
    .option('--prefixes <N>', 'beginnings that conversations share; default 5 for each worker')
    .option('--prefix-tokens <N>', 'tokens of each; default 1024')
    .option('--turns <N>', 'turns of a conversation; default 3')
    .option('--own-tokens <N>', 'tokens of a turn; default 128')
    .option('--new-tokens <N>', 'tokens of an answer; default 64')
    .option('--blocks <N>', "blocks of a worker's cache; default 600")
    .option('--tokens-per-block <N>', 'tokens of a block of the cache; default 32')
    .option('--max-active-requests <N>', 'requests that a worker has at once; default 64')
    .option('--iteration-us <N>', 'microseconds of an iteration; default 1000')
    .option('--context-token-us <N>', 'microseconds more for each prompt token in it; default 800')
    .option('--generation-us <N>', 'microseconds more for each sequence in it that generates; default 3000')
    .option(
      '--gateway-request-us <N>',
      `microseconds of a gateway's loop for a request, of queue and queue-cache; default ${us('requestMs')}`,
    )
    .option(
      '--gateway-token-us <N>',
      `microseconds more for each token of its answer; default ${us('tokenMs')}`,
    )
    .option(
      '--gateway-message-us <N>',
      `microseconds for each message of a worker; default ${us('messageMs')}`,
    )
    .option('--deaths <N>', 'workers that die at random times; default 0')
    .option('--rolling-update <N>', 'replace all workers, N at once; default: none')
    .option('--restart-seconds <N>', 'time until a worker is there again; default 30')
    .option('--seed <N>', 'of what is drawn: one seed gives the same run again; default 1');
  return helpBehind(command, SIMULATE_HELP).action(async (path: string | undefined, flags: SimulateFlags) => {
    const { simulateCommandLine } = await import('./simulate.js');
    await simulateCommandLine(path, flags);
  });
}
