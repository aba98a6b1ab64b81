/** Text of `skein simulate --help` about its file. It is apart from the command, so that help loads no schema. */
export const SIMULATE_HELP = `
FILE.json:
  policy              MAX_UTILIZATION, GUARANTEED_NO_EVICT or STATIC_BATCH
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
  cache                     a router that hears what the workers' caches hold sends it where it costs least

  skein simulate --workers 8 --rate 8 --requests 3000 --prefixes 40 --deaths 3

Exit codes: 2 for a file that cannot be read or a field that is wrong, 1 for a request that can never run.
`;
