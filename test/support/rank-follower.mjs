// One rank of a group that a test leads: runs its part until the group ends. The engine and the seat come as the first message.
import { loadAddon } from '../../dist/engine/executors/native/load-addon.js';
import { Follower } from '../../dist/engine/ranks/follower.js';

process.once('message', ({ engine, seat, path, limitMs }) => {
  const { tensorParallelSize, pipelineParallelSize } = seat.shape;
  const size = tensorParallelSize * pipelineParallelSize;
  const group = new (loadAddon().RankGroup)({ path, rank: seat.rank, size, limitMs });
  const follower = new Follower(engine, { ...seat, group });
  process.on('disconnect', () => process.exit());
  const turn = () => {
    try {
      follower.turn();
    } catch {
      // The group is at its end, which the test has made.
      process.exit();
    }
    if (follower.hasEnded) process.exit();
    setImmediate(turn);
  };
  process.send('ready', turn);
});
