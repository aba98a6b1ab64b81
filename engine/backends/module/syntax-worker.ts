import { type Debugger, type Runtime, Session } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';

// Reads a module that cannot be read once more, with V8's inspector attached: that knows the file, the line
// and the column, which the error does not give. Nothing of the module runs: all of a graph is read before
// any of it runs, and what would run first here throws.
const session = new Session();
const failed: Debugger.ScriptFailedToParseEventDataType[] = [];
session.connect();
session.on('Debugger.scriptFailedToParse', ({ params }) => failed.push(params));
session.post('Debugger.enable');
session.post('Debugger.setSkipAllPauses', { skip: true });
try {
  const graph = ['data:text/javascript,throw 0', workerData].map((url) => `import ${JSON.stringify(url)};`);
  await import(`data:text/javascript,${encodeURIComponent(graph.join(''))}`);
} catch (error) {
  tellPlaceOf(error);
}
session.disconnect();

/** A session's answers come at once. */
function tellPlaceOf(error: unknown): void {
  Object.assign(globalThis, { skeinThrown: error });
  session.post('Runtime.evaluate', { expression: 'skeinThrown' }, (_, answer) => {
    const errorObjectId = answer?.result?.objectId;
    if (errorObjectId === undefined) return;
    // Types of Node.js lack this method of V8's inspector.
    session.post('Runtime.getExceptionDetails', { errorObjectId }, (_problem, given) => {
      const details = (given as { exceptionDetails?: Runtime.ExceptionDetails } | undefined)
        ?.exceptionDetails;
      const script = failed.find(({ scriptId }) => scriptId === details?.scriptId);
      if (details === undefined || script === undefined) return;
      const { lineNumber, columnNumber } = details;
      parentPort!.postMessage({ url: script.url, line: lineNumber + 1, column: columnNumber + 1 });
    });
  });
}
