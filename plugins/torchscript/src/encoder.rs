//! The plugin's face: a folder becomes an open program, batches become embeddings.

use crate::card::{self, CARD, Card, PROGRAM};
use focus_plugin_sdk::{
    Embeddings, Error, Host, ImageBatch, ImageEncoder, Model, OpenOptions, OpenedModel,
    deny_unknown_settings, opened,
};
use std::path::Path;
use tch::{CModule, Device, IValue, Kind, Tensor, no_grad};

/// Opens the model of this plugin.
pub fn open(options: &OpenOptions, host: &Host) -> Result<Box<dyn Model>, Error> {
    Ok(Box::new(Encoder::open(options, host)?))
}

/// An open encoder.
#[derive(Debug)]
pub struct Encoder {
    opened: OpenedModel,
    card: Card,
    program: CModule,
    mean: Tensor,
    std: Tensor,
}

impl Encoder {
    /// Opens the folder's program and runs it once, which tells the embedding's length and that the card fits.
    pub fn open(options: &OpenOptions, host: &Host) -> Result<Self, Error> {
        deny_unknown_settings(options, &[])?;
        if options.device != "cpu" {
            return Err(Error::unsupported(format!(
                "Unsupported device: expected `cpu`, found `{}`",
                options.device
            )));
        }
        let mut state = opened(&card::descriptor(), options);
        if state.dtype != "f32" {
            return Err(Error::unsupported(format!(
                "Unsupported dtype: expected `f32`, found `{}`",
                state.dtype
            )));
        }
        let folder = options.weights.as_deref().map(Path::new).ok_or_else(|| {
            Error::weights(format!(
                "Model `{}` needs a folder with `{PROGRAM}` and `{CARD}`: found none",
                card::ID
            ))
            .with_hint("Give `--weights DIR`; docs/torchscript.md says how to export a model")
        })?;
        let text = std::fs::read_to_string(folder.join(CARD))
            .map_err(|error| Error::weights(format!("Cannot read `{CARD}`: {error}")))?;
        let card = Card::parse(&text)
            .map_err(|reason| Error::weights(format!("`{CARD}` cannot be used: {reason}")))?;
        tch::set_num_threads(i32::try_from(options.threads.max(1)).unwrap_or(i32::MAX));
        let mut program = CModule::load_on_device(folder.join(PROGRAM), Device::Cpu)
            .map_err(|error| {
                Error::weights(format!(
                    "`{PROGRAM}` is not a TorchScript program: {}",
                    first_line(&error.to_string())
                ))
                .with_hint("Export it with `torch.jit.trace(...).save(...)`; a file of weights alone will not do")
            })?;
        program
            .f_set_eval()
            .map_err(|error| Error::weights(format!("`{PROGRAM}` cannot be used: {error}")))?;
        state.preprocessing = card.preprocessing();
        state.batch_size = card.batch;
        state.notes = vec![format!(
            "{}; licence of the weights: {}",
            card.title, card.licence
        )];
        let channel = |values: [f64; 3]| {
            Tensor::from_slice(&values)
                .to_kind(Kind::Double)
                .reshape([1, 3, 1, 1])
        };
        let mut encoder = Self {
            mean: channel(card.preprocessing.mean),
            std: channel(card.preprocessing.std),
            opened: state,
            card,
            program,
        };
        let pixels = &encoder.card.preprocessing;
        let black =
            vec![0; 3 * encoder.card.batch as usize * (pixels.width * pixels.height) as usize];
        let (width, height) = (pixels.width as usize, pixels.height as usize);
        let batch = ImageBatch::new(&black, width, height, encoder.card.batch as usize)?;
        let tried = encoder.run(&batch).map_err(|reason| {
            Error::weights(format!("`{PROGRAM}` does not fit `{CARD}`: {reason}"))
        })?;
        encoder.opened.embedding_dim = u32::try_from(tried.size()[1]).map_err(Error::internal)?;
        host.info(&encoder.opened.notes[0]);
        Ok(encoder)
    }

    /// Embeddings of the whole batch with its padding, (rows, values).
    fn run(&self, images: &ImageBatch<'_>) -> Result<Tensor, String> {
        let said = |error: tch::TchError| first_line(&error.to_string());
        let (rows, width, height) = (images.rows(), images.width(), images.height());
        let shape = [rows, height, width, 3].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        no_grad(|| {
            let pixels = Tensor::from_slice(images.padded())
                .f_reshape(shape)
                .and_then(|bytes| bytes.f_permute([0, 3, 1, 2]))
                // In f64, as a table of 256 levels would be; the program gets f32.
                .and_then(|planes| planes.f_to_kind(Kind::Double)?.f_div_scalar(255.0))
                .and_then(|values| values.f_sub(&self.mean)?.f_div(&self.std))
                .and_then(|values| values.f_to_kind(Kind::Float))
                .map_err(said)?
                .contiguous();
            let given = self
                .program
                .forward_is(&[IValue::Tensor(pixels)])
                .map_err(said)?;
            let pooled = self.card.output.pooling.apply(&self.chosen(given)?)?;
            let found = pooled.size();
            if found[0] != shape[0] {
                return Err(format!(
                    "expected {rows} rows, one an image, found {}",
                    found[0]
                ));
            }
            pooled.f_to_kind(Kind::Float).map_err(said)
        })
    }

    /// The value that the card names.
    fn chosen(&self, given: IValue) -> Result<Tensor, String> {
        let output = &self.card.output;
        let found = match (given, &output.key, output.index) {
            (IValue::Tensor(tensor), None, None) => return Ok(tensor),
            (IValue::Tuple(values), None, Some(index)) => {
                let count = values.len();
                let value = values.into_iter().nth(index);
                value
                    .ok_or_else(|| format!("expected a value at `index` {index}, found {count}"))?
            }
            (IValue::GenericDict(pairs), Some(key), None) => {
                let wanted = IValue::String(key.clone());
                let pair = pairs.into_iter().find(|(name, _)| *name == wanted);
                pair.ok_or_else(|| format!("expected a value at `key` {key}, found none"))?
                    .1
            }
            (IValue::Tensor(_), ..) => {
                return Err(
                    "the program gives one tensor: `key` and `index` must be left out".into(),
                );
            }
            (IValue::Tuple(_), ..) => {
                return Err("the program gives a tuple: `index` is needed".into());
            }
            (IValue::GenericDict(_), ..) => {
                return Err("the program gives a dictionary: `key` is needed".into());
            }
            _ => return Err("the program gives neither a tensor, a tuple nor a dictionary".into()),
        };
        match found {
            IValue::Tensor(tensor) => Ok(tensor),
            _ => Err("the chosen value is not a tensor".into()),
        }
    }
}

/// libtorch's messages carry a stack of C++ frames.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

impl Model for Encoder {
    fn opened(&self) -> OpenedModel {
        self.opened.clone()
    }

    fn image_encoder(&mut self) -> Option<&mut dyn ImageEncoder> {
        Some(self)
    }
}

impl ImageEncoder for Encoder {
    fn encode(&mut self, images: &ImageBatch<'_>, host: &Host) -> Result<Embeddings, Error> {
        host.check_cancelled()?;
        let rows = self.run(images).map_err(Error::device)?;
        let used = i64::try_from(images.used()).map_err(Error::internal)?;
        let values = rows
            .f_narrow(0, 0, used)
            .and_then(|rows| rows.f_reshape([-1]))
            .map_err(Error::device)?;
        let values = Vec::<f32>::try_from(values).map_err(Error::device)?;
        Embeddings::new(self.opened.embedding_dim as usize, values)
    }
}
