// How the rollout went since the page watches it: counts over time, and a list of what happened.

import { clock, duration } from "./format";
import { Note, PARTS } from "./parts";
import type { Sample, Timeline as Data } from "./types";

const [WIDTH, HEIGHT] = [300, 64];

function areas(samples: Sample[], desired: number, now: number) {
  const begin = Date.parse(samples[0]!.at);
  const end = Math.max(now, begin + 10_000);
  const x = (time: number) => (WIDTH * (time - begin)) / (end - begin);
  const most = Math.max(desired, 1);
  return PARTS.map(([layer, colour], index) => {
    const below = (sample: Sample) => PARTS.slice(0, index).reduce((sum, [name]) => sum + sample[name], 0);
    const y = (value: number) => (HEIGHT * (1 - Math.min(1, value / most))).toFixed(1);
    const steps = samples.map((sample, at) => {
      const next = samples[at + 1];
      return { from: x(Date.parse(sample.at)), to: x(next ? Date.parse(next.at) : end), sample };
    });
    const top = steps.map(({ from, to, sample }) => `${from.toFixed(1)},${y(below(sample) + sample[layer])} ${to.toFixed(1)},${y(below(sample) + sample[layer])}`);
    const bottom = steps.toReversed().map(({ from, to, sample }) => `${to.toFixed(1)},${y(below(sample))} ${from.toFixed(1)},${y(below(sample))}`);
    return <polygon key={layer} points={[...top, ...bottom].join(" ")} fill={`var(${colour})`} />;
  });
}

export function Timeline({ of: { samples, events }, desired, now }: { of: Data; desired: number; now: number }) {
  const first = samples[0];
  return (
    <>
      {first && (
        <figure class="chart">
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label="Counts over time. The list below says what happened.">
            <rect class="track" width={WIDTH} height={HEIGHT} />
            {areas(samples, desired, now)}
          </svg>
          <figcaption>
            <span>{clock(first.at)}</span>
            <span>{duration((now - Date.parse(first.at)) / 1000)}</span>
            <span>now</span>
          </figcaption>
        </figure>
      )}
      {events.length === 0 ? (
        <Note>Nothing has happened yet.</Note>
      ) : (
        <ol class="events">
          {events.toReversed().slice(0, 30).map((event, index) => (
            <li key={`${event.at}${index}`} class={event.what}>
              <time dateTime={event.at}>{clock(event.at)}</time> {event.text}
            </li>
          ))}
        </ol>
      )}
    </>
  );
}
