// A rank of groups that a test leads, one after the other: runs its part of each until that group ends. The engine and the seat come
// as a message.
import { loadAddon } from '../../dist/engine/executors/native/load-addon.js';
import { Follower } from '../../dist/engine/ranks/follower.js';

process.on('disconnect', () => process.exit());
process.on('message', ({ engine, seat, path, limitMs, gate = 0 }) => {
  const { tensorParallelSize, pipelineParallelSize } = seat.shape;
  const size = tensorParallelSize * pipelineParallelSize;
  const group = new (loadAddon().RankGroup)({ path, rank: seat.rank, size, limitMs });
  const follower = new Follower(engine, { ...seat, group });
  const turn = () => {
    // Call 1 has opened the model; a gate holds this rank back until the steps after it have been begun.
    if (follower.isOpen && group.callNumber() < 1 + gate) {
      setImmediate(turn);
      return;
    }
    try {
      follower.turn();
    } catch {
      // The group is at its end, which the test has made.
      process.exit();
    }
    if (!follower.hasEnded) {
      setImmediate(turn);
      return;
    }
    follower.close();
    process.send('free');
  };
  process.send('ready', turn);
});
