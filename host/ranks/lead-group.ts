import { skeinVersion } from '../../base/package-info.js';
import { parseGroupAddress } from '../../callbacks/group-address.js';
import { DEFAULT_RANK_TIMEOUT_MS } from '../../callbacks/options/optional-params.js';
import { DEFAULT_JOIN_TIMEOUT_MS, type RanksOptions } from '../../callbacks/ranks-options.js';
import { ADDON_ABI } from '../../engine/executors/native/load-addon.js';
import type { LinkEvents, WorkerLink } from '../links/worker-link.js';
import type { GroupThreadData } from './group-messages.js';
import { type GroupEvents, JoinedRanks } from './joined-ranks.js';
import { LaunchedRanks, type OpenLeader } from './launched-ranks.js';

/** The ranks of one model, as its options have them. */
export interface GroupOptions {
  enginePath: string;
  /** This rank's place where each rank is started by itself; absent: this process starts the others. */
  ranks?: RanksOptions | undefined;
  tensorParallelSize?: number | undefined;
  pipelineParallelSize?: number | undefined;
  rankTimeoutMs?: number | undefined;
  /** The group was there before: ranks that it lost are waited for without end. */
  isBack?: boolean | undefined;
}

type Ready = { type: 'ready'; info: unknown };

/** Opens the worker of a model, alone or as rank 0 of a group that is started here. @throws as LaunchedRanks */
export function launchGroup<Message extends { type: string }, Command>(
  { enginePath, tensorParallelSize = 1, pipelineParallelSize = 1, rankTimeoutMs }: GroupOptions,
  events: LinkEvents<Message>,
  openLeader: OpenLeader<Message, Command>,
): WorkerLink<Command> {
  if (tensorParallelSize * pipelineParallelSize === 1) return openLeader(null, events);
  const limitMs = rankTimeoutMs ?? DEFAULT_RANK_TIMEOUT_MS;
  const launch = { enginePath, tensorParallelSize, pipelineParallelSize, limitMs };
  return new LaunchedRanks(launch, events, openLeader);
}

/** Opens rank 0 of a group whose other ranks come to its address; they are notified when it is ready. */
export function leadJoined<Message extends { type: string }, Command>(
  options: GroupOptions & { ranks: RanksOptions },
  events: GroupEvents<Message>,
  openLeader: OpenLeader<Message, Command>,
): JoinedRanks<Message, Command> {
  const joined: JoinedRanks<Message, Command> = new JoinedRanks(
    joinOptionsOf(options),
    {
      ...events,
      onMessage: (message) => {
        if (message.type === 'ready') {
          const { info } = message as unknown as Ready;
          joined.tell('all', { type: 'ready', info } satisfies Ready);
        }
        events.onMessage(message);
      },
    },
    openLeader,
  );
  return joined;
}

/** @throws ParameterError for an address that is none */
export function joinOptionsOf({
  enginePath,
  ranks,
  tensorParallelSize = 1,
  pipelineParallelSize = 1,
  rankTimeoutMs,
  isBack = false,
}: GroupOptions & { ranks: RanksOptions }): GroupThreadData {
  const isGiven = tensorParallelSize * pipelineParallelSize > 1;
  return {
    enginePath,
    address: parseGroupAddress(ranks.address),
    secret: ranks.secret ?? null,
    rank: ranks.rank,
    shape: isGiven
      ? { tensorParallelSize, pipelineParallelSize }
      : { tensorParallelSize: ranks.size, pipelineParallelSize: 1 },
    build: `Skein ${skeinVersion} (addon ${ADDON_ABI}, ${process.arch})`,
    joinLimitMs: isBack ? null : (ranks.joinTimeoutMs ?? DEFAULT_JOIN_TIMEOUT_MS),
    limitMs: rankTimeoutMs ?? DEFAULT_RANK_TIMEOUT_MS,
  };
}
