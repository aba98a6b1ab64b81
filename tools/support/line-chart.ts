/** A line of a chart: its name, and a value for each place on the x axis. */
export interface ChartLine {
  name: string;
  color: string;
  values: readonly number[];
}

export interface ChartPanel {
  title: string;
  /** Places on the x axis, evenly apart, and what they count. */
  places: readonly string[];
  xTitle: string;
  /** Values that have a line across, in rising order; the first and the last one are the ends of the y axis. */
  ticks: readonly { value: number; text: string }[];
  /** Equal ratios take equal heights. */
  isLogarithmic: boolean;
  lines: readonly ChartLine[];
}

const PANEL = { width: 430, height: 300, left: 62, right: 16, top: 34, bottom: 48 };
const LEGEND_HEIGHT = 28;
const FONT = 'font-family="system-ui, sans-serif" font-size="12" fill="#333"';

/**
 * Panels side by side as an SVG, with a title for readers who cannot see it, and one legend: the lines of all
 * panels have the same names and colors.
 *
 *   title           title
 *   |    __/        |\
 *   |___/__         |_\__
 *   - random   - cache
 */
export function lineChart(title: string, panels: readonly ChartPanel[]): string {
  const [width, height] = [panels.length * PANEL.width, PANEL.height + LEGEND_HEIGHT];
  const parts = panels.map(
    (panel, index) => `<g transform="translate(${index * PANEL.width} 0)">${drawn(panel)}</g>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${title}">
<title>${title}</title>
<rect width="${width}" height="${height}" fill="#fff"/>
${parts.join('\n')}
${legend(panels[0]?.lines ?? [])}
</svg>
`;
}

function drawn({ title, places, xTitle, ticks, isLogarithmic, lines }: ChartPanel): string {
  const { width, height, left, right, top, bottom } = PANEL;
  const [innerWidth, innerHeight] = [width - left - right, height - top - bottom];
  const scale = isLogarithmic ? Math.log : (value: number) => value;
  const [low, high] = [scale(ticks[0]!.value), scale(ticks.at(-1)!.value)];
  const x = (place: number) => left + (innerWidth * place) / Math.max(1, places.length - 1);
  const y = (value: number) => {
    const share = (scale(value) - low) / (high - low);
    return top + innerHeight * (1 - Math.min(1, Math.max(0, share)));
  };
  const at = (value: number) => value.toFixed(1);
  const grid = ticks.map(
    ({ value, text }) =>
      `<path d="M${left} ${at(y(value))}h${innerWidth}" stroke="#ddd"/><text x="${left - 6}" y="${at(y(value) + 4)}" text-anchor="end" ${FONT}>${text}</text>`,
  );
  const labels = places.map(
    (text, place) =>
      `<text x="${at(x(place))}" y="${height - bottom + 18}" text-anchor="middle" ${FONT}>${text}</text>`,
  );
  const curves = lines.map(({ color, values }) => {
    const points = values.map((value, place) => `${at(x(place))} ${at(y(value))}`);
    const dots = points.map((point) => {
      const [cx, cy] = point.split(' ');
      return `<circle cx="${cx}" cy="${cy}" r="3" fill="${color}"/>`;
    });
    return `<path d="M${points.join('L')}" fill="none" stroke="${color}" stroke-width="2"/>${dots.join('')}`;
  });
  const titles = `<text x="${left}" y="20" ${FONT} font-weight="600">${title}</text><text x="${left + innerWidth / 2}" y="${height - 10}" text-anchor="middle" ${FONT}>${xTitle}</text>`;
  return [titles, ...grid, ...labels, ...curves].join('\n');
}

function legend(lines: readonly ChartLine[]): string {
  return lines
    .map(({ name, color }, index) => {
      const x = PANEL.left + index * 150;
      const y = PANEL.height + 14;
      return `<path d="M${x} ${y}h18" stroke="${color}" stroke-width="2"/><text x="${x + 24}" y="${y + 4}" ${FONT}>${name}</text>`;
    })
    .join('\n');
}
