/** What `skein simulate --help` says of its file. Apart from the command, so that asking costs no schema. */
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

Exit codes: 2 for a file that cannot be read or a field that is wrong, 1 for a request that can never run.
`;
