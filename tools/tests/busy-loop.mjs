// A process of BusyLoops: works without a rest until its parent has gone, which it looks for every 50 ms.
const MS = 50;

process.on('disconnect', () => process.exit());

function work() {
  const end = performance.now() + MS;
  let x = 0;
  while (performance.now() < end) x = Math.sqrt(x + 1);
  setImmediate(work);
}
work();
