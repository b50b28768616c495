//! What is tested beneath the face: the time that is held, and the races, by models.

#[cfg(quorlock_models)]
mod closing;
#[cfg(quorlock_models)]
mod landing;
#[cfg(quorlock_models)]
mod models;
#[cfg(quorlock_models)]
mod sleeping;
#[cfg(quorlock_models)]
mod turns;
mod validity;
