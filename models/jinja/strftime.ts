const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June'],
  ...['July', 'August', 'September', 'October', 'November', 'December'],
];
const DAY_MS = 86_400_000;

/** A number with its width and what fills it. */
interface Padded {
  number: number;
  width: number;
  fill: '0' | ' ';
}

const zeros = (number: number, width = 2): Padded => ({ number, width, fill: '0' });
const spaces = (number: number): Padded => ({ number, width: 2, fill: ' ' });

/** Codes that stand for others. */
const COMPOUND: Readonly<Record<string, string>> = {
  c: '%a %b %e %H:%M:%S %Y',
  D: '%m/%d/%y',
  F: '%Y-%m-%d',
  R: '%H:%M',
  r: '%I:%M:%S %p',
  T: '%H:%M:%S',
  v: '%e-%b-%Y',
  X: '%H:%M:%S',
  x: '%m/%d/%y',
};

/**
 * Python's strftime for local time without a zone, in C's locale, with glibc's flags: - (no padding), _ (spaces), 0 (zeros),
 * ^ (capitals), # (the other case). Codes that are not known stay as they are.
 */
export function strftime(date: Date, format: string): string {
  return format.replace(
    /%([-_0^#]?)(\d{0,2})([A-Za-z%])/g,
    (code, flag: string, width: string, letter: string) => {
      const compound = COMPOUND[letter];
      const value = compound === undefined ? valueFor(date, letter) : strftime(date, compound);
      if (value === null) return code;
      return typeof value === 'string' ? ofText(value, flag, letter, width) : ofNumber(value, flag, width);
    },
  );
}

function ofText(text: string, flag: string, letter: string, width: string): string {
  const shown =
    flag === '^' || (flag === '#' && letter !== 'p')
      ? text.toUpperCase()
      : flag === '#'
        ? text.toLowerCase()
        : text;
  return shown.padStart(Number(width), flag === '0' ? '0' : ' ');
}

function ofNumber({ number, width, fill }: Padded, flag: string, given: string): string {
  const wide = given === '' ? (flag === '-' ? 1 : width) : Number(given);
  const filled = flag === '_' ? ' ' : flag === '0' ? '0' : fill;
  return String(number).padStart(wide, filled);
}

function valueFor(date: Date, letter: string): string | Padded | null {
  return textValue(date, letter) ?? clockValue(date, letter) ?? dayValue(date, letter);
}

function textValue(date: Date, letter: string): string | null {
  switch (letter) {
    case 'A':
      return DAYS[date.getDay()]!;
    case 'a':
      return DAYS[date.getDay()]!.slice(0, 3);
    case 'B':
      return MONTHS[date.getMonth()]!;
    case 'b':
    case 'h':
      return MONTHS[date.getMonth()]!.slice(0, 3);
    case 'p':
      return date.getHours() < 12 ? 'AM' : 'PM';
    case 'P':
      return date.getHours() < 12 ? 'am' : 'pm';
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case '%':
      return '%';
    case 'z':
    case 'Z':
      return '';
  }
  return null;
}

function clockValue(date: Date, letter: string): Padded | null {
  switch (letter) {
    case 'H':
      return zeros(date.getHours());
    case 'k':
      return spaces(date.getHours());
    case 'I':
      return zeros(date.getHours() % 12 || 12);
    case 'l':
      return spaces(date.getHours() % 12 || 12);
    case 'M':
      return zeros(date.getMinutes());
    case 'S':
      return zeros(date.getSeconds());
    case 'f':
      return zeros(date.getMilliseconds() * 1000, 6);
    case 's':
      return zeros(Math.floor(date.getTime() / 1000), 1);
  }
  return null;
}

function dayValue(date: Date, letter: string): Padded | null {
  const day = date.getDay();
  const ofYear = dayOfYear(date);
  switch (letter) {
    case 'd':
      return zeros(date.getDate());
    case 'e':
      return spaces(date.getDate());
    case 'm':
      return zeros(date.getMonth() + 1);
    case 'j':
      return zeros(ofYear + 1, 3);
    case 'Y':
      return zeros(date.getFullYear(), 1);
    case 'y':
      return zeros(date.getFullYear() % 100);
    case 'C':
      return zeros(Math.floor(date.getFullYear() / 100));
    case 'w':
      return zeros(day, 1);
    case 'u':
      return zeros(day || 7, 1);
    case 'U':
      return zeros(Math.floor((ofYear + 7 - day) / 7));
    case 'W':
      return zeros(Math.floor((ofYear + 7 - ((day + 6) % 7)) / 7));
    case 'V':
      return zeros(isoWeek(date).week);
    case 'G':
      return zeros(isoWeek(date).year, 4);
    case 'g':
      return zeros(isoWeek(date).year % 100);
  }
  return null;
}

/** Days since the year began. */
function dayOfYear(date: Date): number {
  const today = Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  return Math.round((today - Date.UTC(date.getFullYear(), 0, 1)) / DAY_MS);
}

/** Week of ISO 8601, whose year is that of its Thursday. */
function isoWeek(date: Date): { year: number; week: number } {
  const thursday = new Date(Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()));
  thursday.setUTCDate(thursday.getUTCDate() + 4 - (thursday.getUTCDay() || 7));
  const year = thursday.getUTCFullYear();
  return { year, week: Math.floor((thursday.getTime() - Date.UTC(year, 0, 1)) / DAY_MS / 7) + 1 };
}
