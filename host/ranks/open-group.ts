import { tellGuarded } from '../../base/guarded-calls.js';
import type { FunctionCallbacks, GptManagerOptions } from '../../callbacks/gpt-manager-options.js';
import type { RanksOptions } from '../../callbacks/ranks-options.js';
import type { EngineInfo, HostMessage, WorkerMessage } from '../../callbacks/worker-messages.js';
import { rankWorkerScript } from '../../engine/worker/worker-script.js';
import { openLink } from '../links/open-link.js';
import type { LinkEvents, WorkerLink } from '../links/worker-link.js';
import { EveryRankFollower, EveryRankLeader, type EveryRankMessage } from './every-rank.js';
import type { GroupThreadData } from './group-messages.js';
import { JoinedRanks } from './joined-ranks.js';
import type { OpenLeader } from './launched-ranks.js';
import { type GroupOptions, joinOptionsOf, launchGroup, leadJoined } from './lead-group.js';

type Events = LinkEvents<WorkerMessage>;
type Joined = JoinedRanks<WorkerMessage, HostMessage>;
/** Messages between the hosts of a group. */
type HostToHost = { type: 'ready'; info: EngineInfo } | EveryRankMessage;

/** The ranks of one manager: how its worker is opened, and what its callbacks are. */
export class ManagerRanks {
  readonly #options: GptManagerOptions;
  readonly #report: (error: Error) => void;
  readonly #leader: EveryRankLeader | null = null;
  readonly #follower: EveryRankFollower | null = null;
  #joined: Joined | null = null;
  /** The supervisor opens another group only where one was ready. */
  #wasOpened = false;

  constructor(options: GptManagerOptions, report: (error: Error) => void) {
    this.#options = options;
    this.#report = report;
    const { ranks, callbackModule } = options;
    if (ranks?.requests !== 'everyRank' || callbackModule !== undefined) return;
    const tell = (message: EveryRankMessage) => this.#joined?.tell('all', message);
    if (ranks.rank === 0) {
      this.#leader = new EveryRankLeader(options, ranks.size - 1, tell, (reason) =>
        this.#joined?.lose(reason),
      );
    } else {
      this.#follower = new EveryRankFollower(options, tell, (error) => this.#report(error));
    }
  }

  /** True for a rank that follows another: requests do not come here. */
  get follows(): boolean {
    return (this.#options.ranks?.rank ?? 0) > 0;
  }

  /** The callbacks that the bridge calls. */
  callbacksOf(own: FunctionCallbacks): FunctionCallbacks {
    return this.#leader?.callbacks ?? own;
  }

  /** Opens the worker of this manager's rank, with all that belongs to it. */
  open(events: Events, openLeader: OpenLeader<WorkerMessage, HostMessage>): WorkerLink<HostMessage> {
    const { enginePath, ranks, optionalParams = {} } = this.#options;
    const { tensorParallelSize, pipelineParallelSize, rankTimeoutMs } = optionalParams;
    const sizes = { tensorParallelSize, pipelineParallelSize, rankTimeoutMs };
    const group = { enginePath, ...sizes, isBack: this.#wasOpened };
    this.#wasOpened = true;
    if (ranks === undefined) return launchGroup(group, events, openLeader);
    this.#joined =
      ranks.rank === 0
        ? this.#lead({ ...group, ranks }, events, openLeader)
        : this.#follow(joinOptionsOf({ ...group, ranks }), events);
    return this.#joined;
  }

  #lead(
    group: GroupOptions & { ranks: RanksOptions },
    events: Events,
    openLeader: OpenLeader<WorkerMessage, HostMessage>,
  ): Joined {
    return leadJoined(
      group,
      {
        onMessage: events.onMessage,
        onExit: (error) => {
          this.#leader?.forget();
          events.onExit(error);
        },
        onGroupMessage: (rank, message) => this.#leader?.receive(rank, message as EveryRankMessage),
        onMissing: (missing) =>
          tellGuarded({ callback: 'ranks.onMissing' }, () => group.ranks.onMissing?.(missing), this.#report),
      },
      openLeader,
    );
  }

  #follow(join: GroupThreadData, events: Events): Joined {
    const { enginePath, optionalParams = {} } = this.#options;
    const { isolate = false, threads } = optionalParams;
    return new JoinedRanks<WorkerMessage, HostMessage>(
      join,
      {
        // The group is ready when rank 0 says so, with what it says of the engine.
        onMessage: (message) => {
          if (message.type !== 'ready') events.onMessage(message);
        },
        onExit: (error) => {
          this.#follower?.fail(error);
          events.onExit(error);
        },
        onMissing: () => {},
        onGroupMessage: (_, sent) => {
          const message = sent as HostToHost;
          if (message.type === 'ready') events.onMessage(message);
          else void this.#follower?.receive(message);
        },
      },
      (seat, ofWorker) =>
        openLink(
          rankWorkerScript(),
          { enginePath, seat, ...(threads === undefined ? {} : { threads }) },
          ofWorker,
          {
            isolate,
            watchdogTimeoutMs: 0,
            owner: `Rank ${seat.rank}`,
          },
        ),
    );
  }
}
