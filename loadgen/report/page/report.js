// Script of a report's page, which runs in a browser. `reports` is the page's data; the library before it defines
// `uPlot`.
/* global document, window, matchMedia, uPlot */
(() => {
  const reports = JSON.parse(document.getElementById('reports').textContent);
  const changes = JSON.parse(document.getElementById('changes').textContent);
  const runs = reports.flatMap(({ name, report }) =>
    report.runs.map((run) => ({
      ...run,
      name: reports.length > 1 ? `${name}: ${run.label}` : run.label,
      report,
    })),
  );
  const LATENCIES = {
    ttft: 'Time to first token',
    tpot: 'Time per output token',
    itl: 'Between pieces',
    e2e: 'End to end',
    queueing: 'Sent behind schedule',
  };
  const root = document.getElementById('report');
  const charts = [];

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }
  const colour = (i) =>
    window
      .getComputedStyle(document.documentElement)
      .getPropertyValue(`--c${i % 8}`)
      .trim();
  const css = (name) => window.getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (value, digits) =>
    value === null || value === undefined || Number.isNaN(value)
      ? '–'
      : value.toLocaleString('en', {
          maximumFractionDigits: digits ?? (Math.abs(value) < 10 ? 2 : Math.abs(value) < 1000 ? 1 : 0),
        });

  function table(head, rows) {
    const cell = (content) => {
      if (content?.nodeType) return element('td', {}, content);
      const [text, kind] = Array.isArray(content) ? content : [content, ''];
      return element('td', kind ? { class: kind } : {}, String(text));
    };
    return element(
      'table',
      {},
      element('thead', {}, element('tr', {}, ...head.map((text) => element('th', {}, text)))),
      element('tbody', {}, ...rows.map((row) => element('tr', {}, ...row.map(cell)))),
    );
  }

  function named(run, i) {
    const dot = element('span', { class: 'dot', style: `background: var(--c${i % 8})` });
    return element('span', {}, dot, run.name);
  }

  /** A chart in a card; `make` returns its options and data with the present colours. */
  function chart(title, make) {
    const place = element('div');
    const card = element('div', { class: 'card' }, element('h3', {}, title), place);
    charts.push({ place, make });
    return card;
  }

  function draw() {
    for (const entry of charts) {
      entry.plot?.destroy();
      const { options, data } = entry.make();
      const axis = {
        stroke: css('--soft'),
        grid: { stroke: css('--line'), width: 1 },
        ticks: { stroke: css('--line') },
      };
      const width = Math.max(320, entry.place.clientWidth);
      entry.plot = new uPlot(
        {
          width,
          height: 260,
          padding: [10, 26, 0, 0],
          ...options,
          axes: options.axes.map((own, i) => ({ ...axis, size: i === 0 ? 46 : 62, ...own })),
        },
        data,
        entry.place,
      );
    }
  }

  const line = (label, i, more = {}) => ({
    label,
    stroke: colour(i),
    width: 2,
    points: { show: false },
    spanGaps: true,
    ...more,
  });
  const labelled = (label, more = {}) => ({ label, ...more });
  const value = (_, v) => number(v);

  function overview() {
    root.append(element('h2', {}, 'Runs'));
    const failed = ({ requests }) => requests.total - requests.outcomes.completed;
    root.append(
      element(
        'div',
        { class: 'card' },
        table(
          [
            'run',
            'requests',
            'failed',
            'requests/s',
            'output tok/s',
            'TTFT p50',
            'p99',
            'TPOT p50',
            'p99',
            'E2E p50',
            'p99',
            'goodput',
          ],
          runs.map((run, i) => {
            const { ttft, tpot, e2e } = run.latencies;
            return [
              named(run, i),
              number(run.requests.total, 0),
              [number(failed(run), 0), failed(run) > 0 ? 'bad' : ''],
              number(run.throughput.requests),
              number(run.throughput.outputTokens),
              ...[ttft, tpot, e2e].flatMap(({ p50, p99 }) => [number(p50), number(p99)]),
              run.goodput ? `${number(100 * run.goodput.share, 1)} %` : '–',
            ];
          }),
        ),
        element('p', { class: 'soft' }, 'Latencies in milliseconds, from the sending of the request.'),
      ),
    );
  }

  /**
   * The comparison that `skein bench compare` prints: each load's figures side by side, with the certain part of each
   * change.
   */
  function comparisons() {
    for (const { names, comparisons: all } of changes) {
      root.append(element('h2', {}, `From ${names[0]} to ${names[1]}`));
      const mean = ({ mean: value, half }) => number(value) + (half === null ? '' : ` ± ${number(half)}`);
      const signed = (value) => `${value >= 0 ? '+' : ''}${value.toFixed(1)}`;
      const kinds = { better: 'good', worse: 'bad' };
      const box = element('div', { class: 'changes' });
      for (const label of new Set(all.map((one) => one.label))) {
        const rows = all
          .filter((one) => one.label === label)
          .map(({ metric, unit, a, b, change, interval, verdict }) => [
            metric + (unit && `, ${unit}`),
            mean(a),
            mean(b),
            change === null ? '–' : `${signed(change)} %`,
            interval === null ? '–' : `${signed(interval[0])} to ${signed(interval[1])} %`,
            [verdict === 'unknown' ? '–' : verdict, kinds[verdict] ?? ''],
          ]);
        const head = [label, ...names, 'change', '95 % interval of it', ''];
        box.append(element('div', { class: 'card' }, table(head, rows)));
      }
      root.append(box);
      const isSingle = all.some(({ change, interval }) => change !== null && interval === null);
      const words = isSingle
        ? 'No interval without at least two runs on each side: --repeat N makes them.'
        : 'Means of repeated runs with their 95 % intervals; "same" where the interval of the change holds 0.';
      root.append(element('p', { class: 'soft' }, words));
    }
  }

  function sweeps() {
    const sets = reports
      .map(({ name, report }, i) => ({
        name,
        report,
        i,
        runs: report.runs.filter(({ load }) => load !== null).toSorted((a, b) => a.load - b.load),
      }))
      .filter(({ runs: own }) => new Set(own.map(({ load }) => load)).size > 1);
    if (sets.length === 0) return;
    root.append(element('h2', {}, 'Throughput against latency'));
    const grid = element('div', { class: 'grid' });
    const over =
      sets[0].report.sweep?.over === 'concurrency' ? 'requests at once' : 'requests offered a second';
    const add = (title, xLabel, yLabel, x, of) =>
      grid.append(
        chart(title, () => ({
          data: joinedPoints(sets, x, of),
          options: {
            scales: { x: { time: false } },
            series: [
              { label: xLabel, value },
              ...sets.map(({ name }, i) =>
                line(sets.length > 1 ? name : yLabel, i, { points: { show: true, size: 7 }, value }),
              ),
            ],
            axes: [labelled(xLabel), labelled(yLabel)],
          },
        })),
      );
    add(
      'Output tokens a second over load',
      over,
      'output tokens/s',
      (run) => run.load,
      (run) => run.throughput.outputTokens,
    );
    add(
      'TTFT p99 over throughput',
      'requests/s',
      'TTFT p99, ms',
      (run) => run.throughput.requests,
      (run) => run.latencies.ttft.p99 ?? run.latencies.e2e.p99,
    );
    add(
      'TPOT p99 over throughput',
      'requests/s',
      'TPOT p99, ms',
      (run) => run.throughput.requests,
      (run) => run.latencies.tpot.p99,
    );
    add(
      'E2E p99 over load',
      over,
      'E2E p99, ms',
      (run) => run.load,
      (run) => run.latencies.e2e.p99,
    );
    root.append(grid);
    knees(sets);
  }

  /** Points of each report's runs as one table for uPlot; repetitions of a load are one point. */
  function joinedPoints(sets, x, of) {
    const mean = (values) => values.reduce((sum, v) => sum + v, 0) / values.length;
    return uPlot.join(
      sets.map(({ runs: own }) => {
        const byLoad = new Map();
        for (const run of own) {
          if (x(run) === null || of(run) === null) continue;
          byLoad.set(run.load, [...(byLoad.get(run.load) ?? []), run]);
        }
        const points = [...byLoad.values()].map((same) => [mean(same.map(x)), mean(same.map(of))]);
        points.sort((a, b) => a[0] - b[0]);
        return [points.map(([a]) => a), points.map(([, b]) => b)];
      }),
    );
  }

  /** One sentence for each sweep: its knee, and the greatest load that the server kept up with. */
  function knees(sets) {
    for (const { name, report } of sets) {
      const { sweep } = report;
      if (!sweep) continue;
      const knee = sweep.knee
        ? `Knee at ${number(sweep.knee.load)} (${number(sweep.knee.outputTokensPerSecond)} output tokens/s). `
        : '';
      const text = sweep.isSaturated
        ? `Kept up with until ${number(sweep.sustained)}.`
        : 'The server was not saturated.';
      root.append(element('p', { class: 'soft' }, `${sets.length > 1 ? `${name}: ` : ''}${knee}${text}`));
    }
  }

  function curves() {
    root.append(element('h2', {}, 'Percentiles'));
    const grid = element('div', { class: 'grid' });
    const most = runs.slice(0, 16);
    // A share of 1 would be infinitely far, so the curve ends at the share of its last value.
    const at = (share) => Math.min(4, -Math.log10(Math.max(1e-9, 1 - share)));
    for (const [name, title] of Object.entries(LATENCIES)) {
      const have = most.map((run, i) => ({ run, i })).filter(({ run }) => run.curves[name]);
      if (have.length === 0) continue;
      grid.append(
        chart(title, () => ({
          data: uPlot.join(
            have.map(({ run }) => {
              const seen = new Map();
              for (const [share, ms] of run.curves[name]) if (share < 1) seen.set(at(share), ms);
              return [[...seen.keys()], [...seen.values()]];
            }),
          ),
          options: {
            scales: { x: { time: false, range: [0, 4] } },
            series: [
              {
                label: 'percentile',
                value: (_, v) => (v === null ? '–' : `${number(100 * (1 - 10 ** -v), 3)} %`),
              },
              ...have.map(({ run, i }) =>
                line(run.name, i, { value: (_, v) => (v === null ? '–' : `${number(v)} ms`) }),
              ),
            ],
            axes: [
              {
                splits: () => [0, 0.301, 1, 2, 3, 4],
                values: () => ['0', '50 %', '90 %', '99 %', '99.9 %', '99.99 %'],
              },
              labelled('milliseconds'),
            ],
          },
        })),
      );
    }
    root.append(grid);
  }

  function timelines() {
    root.append(element('h2', {}, 'Over time'));
    const grid = element('div', { class: 'grid' });
    const most = runs.slice(0, 12);
    const seconds = (run) => run.timeline.inFlight.map((_, i) => ((i + 1) * run.timeline.binMs) / 1000);
    const perSecond = (run, values) => values.map((count) => (1000 * count) / run.timeline.binMs);
    const add = (title, yLabel, of) => {
      grid.append(
        chart(title, () => ({
          data: uPlot.join(most.map((run) => [seconds(run), of(run)])),
          options: {
            scales: { x: { time: false }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] } },
            series: [{ label: 'seconds', value }, ...most.map((run, i) => line(run.name, i, { value }))],
            axes: [labelled('seconds'), labelled(yLabel)],
          },
        })),
      );
    };
    add('Pieces of answers a second', 'pieces/s', (run) => perSecond(run, run.timeline.pieces));
    add('Requests in flight', 'requests', (run) => run.timeline.inFlight);
    add('Requests sent a second', 'requests/s', (run) => perSecond(run, run.timeline.sent));
    add('Requests answered a second', 'requests/s', (run) => perSecond(run, run.timeline.completed));
    root.append(grid);
  }

  function client() {
    root.append(element('h2', {}, 'The client itself'));
    root.append(
      element(
        'div',
        { class: 'card' },
        table(
          [
            'run',
            'offered/s',
            'sent/s',
            'behind schedule p99',
            'busiest worker',
            'its event loop late by',
            'garbage collection',
            'processor',
          ],
          runs.map((run, i) => {
            const worst = (of) => Math.max(0, ...run.client.workers.map(of));
            return [
              named(run, i),
              number(run.throughput.offered),
              number(run.throughput.issued),
              `${number(run.latencies.queueing.p99)} ms`,
              [
                `${number(100 * worst((w) => w.eventLoopUtilization.mean), 0)} %`,
                run.client.isBottleneck ? 'bad' : '',
              ],
              `${number(worst((w) => w.loopDelayP99Ms))} ms`,
              `${number(100 * worst((w) => w.gc), 1)} %`,
              `${number(100 * worst((w) => w.cpu.mean), 0)} %`,
            ];
          }),
        ),
        ...reports.map(({ report }) => element('p', { class: 'soft' }, report.placement.message)),
      ),
    );
  }

  function details() {
    root.append(element('h2', {}, 'Details'));
    for (const [i, run] of runs.entries()) {
      const outcomes = Object.entries(run.requests.outcomes).filter(([, count]) => count > 0);
      const box = element('details', { class: 'card' }, element('summary', {}, named(run, i)));
      box.append(
        table(
          ['outcome', 'requests'],
          outcomes.map(([name, count]) => [name.replaceAll('_', ' '), number(count, 0)]),
        ),
      );
      if (run.requests.messages.length > 0) {
        box.append(
          element(
            'pre',
            {},
            run.requests.messages
              .slice(0, 10)
              .map(({ outcome, message }) => `${outcome}: ${message}`)
              .join('\n'),
          ),
        );
      }
      const server = Object.entries(run.server?.metrics ?? {}).filter(
        ([, { first, last, max }]) => last !== first || max > 0,
      );
      if (server.length > 0) {
        box.append(
          element('h3', {}, "The server's metrics"),
          table(
            ['series', 'first', 'last', 'growth', 'mean', 'greatest'],
            server.map(([name, m]) => [
              name,
              number(m.first),
              number(m.last),
              number(m.last - m.first),
              number(m.mean),
              number(m.max),
            ]),
          ),
        );
      }
      root.append(box);
    }
    for (const { name, report } of reports) {
      const box = element(
        'details',
        { class: 'card' },
        element('summary', {}, `Options${reports.length > 1 ? ` of ${name}` : ''}`),
      );
      box.append(
        element(
          'pre',
          {},
          JSON.stringify({ options: report.options, data: report.data, machine: report.machine }, null, 2),
        ),
      );
      root.append(box);
    }
  }

  function head() {
    root.append(
      element('h1', {}, reports.length > 1 ? `Comparison of ${reports.length} benchmarks` : 'Benchmark'),
    );
    for (const { name, report } of reports) {
      const { target, machine } = report;
      const prefix = reports.length > 1 ? `${name}: ` : '';
      root.append(
        element('div', {}, `${prefix}${target.model || 'raw'} at ${target.url}`),
        element(
          'div',
          { class: 'soft' },
          `${report.startedAt.replace('T', ' ').slice(0, 19)} UTC · ${report.data.kind} data · ${machine.cpu}, ${machine.cores} cores, Node ${machine.node} · skein ${report.skein}`,
        ),
      );
    }
    for (const run of runs) {
      const found = run.client.findings.filter(({ isBottleneck }) => isBottleneck);
      if (found.length > 0) {
        root.append(
          element(
            'div',
            { class: 'alert' },
            element('b', {}, `${run.name}: the client was a bottleneck`),
            found.map(({ message }) => message).join(' '),
          ),
        );
      }
      if (!run.complete) {
        root.append(
          element(
            'div',
            { class: 'alert' },
            element('b', {}, `${run.name} is incomplete`),
            `It was cut off: ${run.cutOff}.`,
          ),
        );
      }
    }
  }

  head();
  overview();
  comparisons();
  sweeps();
  curves();
  timelines();
  client();
  details();
  draw();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  let timer;
  window.addEventListener('resize', () => {
    clearTimeout(timer);
    timer = setTimeout(draw, 150);
  });
})();
