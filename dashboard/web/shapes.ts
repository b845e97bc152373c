// How a state looks, and the shapes: paths in a box of 10 by 10, for canvas and SVG.

export interface Look {
  word: string;
  shape: string;
  /** The name of a CSS variable with the colour. */
  colour: string;
}

export const SQUARE = "M2 1h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H2a1 1 0 0 1-1-1V2a1 1 0 0 1 1-1z";
export const HALF = "M5 .8a4.2 4.2 0 1 1 0 8.4a4.2 4.2 0 1 1 0-8.4zM5 2v6a3 3 0 0 1 0-6z";
export const RING = "M5 1.2a3.8 3.8 0 1 1 0 7.6a3.8 3.8 0 1 1 0-7.6zM5 2.6a2.4 2.4 0 1 0 0 4.8a2.4 2.4 0 1 0 0-4.8z";
export const DIAMOND = "M5 -.3L10.3 5L5 10.3L-.3 5zM4.4 2.3v3.2h1.2V2.3zM4.4 6.5v1.2h1.2V6.5z";
export const CROSS =
  "M1.4 2.6L2.6 1.4L5 3.8L7.4 1.4L8.6 2.6L6.2 5L8.6 7.4L7.4 8.6L5 6.2L2.6 8.6L1.4 7.4L3.8 5z";
export const DOT = "M4 4h2v2H4z";
export const BARS = "M2 1h2.4v8H2zM5.6 1H8v8H5.6z";
export const TWO = "M.8 3.2h8.4v1.4H.8zM.8 5.6h8.4V7H.8zM6.6 1.2h1.6L3.4 8.8H1.8z";

// Of rollouts with a RolloutPolicy.
/** A frame with a dot: somebody must fill it in. */
export const FRAME = "M.8.8h8.4v8.4H.8zM2.2 2.2v5.6h5.6V2.2zM3.7 3.7h2.6v2.6H3.7z";
export const HOURGLASS = "M1.4.6h7.2v1.8L6 5l2.6 2.6v1.8H1.4V7.6L4 5L1.4 2.4z";
export const COLUMNS = "M.8 5.6h2.2v3.6H.8zM3.9 3.2h2.2v6H3.9zM7 .8h2.2v8.4H7z";
export const CLOCK = "M5 .6a4.4 4.4 0 1 1 0 8.8a4.4 4.4 0 1 1 0-8.8zM4.4 2.2v3.5h3V4.5H5.6V2.2z";
export const CUT = "M.8.8h8.4v8.4H.8zM5 2.2v5.6h2.8V2.2z";
export const BACK = "M.4 5L4.8.8v2.7h4.8v3H4.8v2.7z";
export const BACK_TO_WALL = "M.6.8h1.5v8.4H.6zM2.7 5L6.4 1.4v2.2h3.2v2.8H6.4v2.2z";
export const NO_ENTRY = "M3.2.6h3.6L9.4 3.2v3.6L6.8 9.4H3.2L.6 6.8V3.2zM2.2 4.3v1.4h5.6V4.3z";
export const HOLLOW_DIAMOND = "M5 -.3L10.3 5L5 10.3L-.3 5zM5 2.1L2.1 5L5 7.9L7.9 5z";
